//! Kept answers of `heapr explain`: what was resident at moments, read again.

use std::io;
use std::path::Path;

use anyhow::Context as _;
use heapr_resident::Class;
use serde_json::{Value, json};

/// What was resident at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeptMoment {
    /// From the first moment on; `None`: an answer that was kept without its time.
    pub(super) time_ns: Option<u64>,
    /// What it is called, where it has a name.
    pub(super) name: String,
    pub(super) rss_bytes: u64,
    /// Class and bytes; they add up to all.
    pub(super) lines: Vec<(String, u64)>,
}

/// Moments of one process, by time.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptMoments {
    /// The process, as texts name it.
    pub(super) of: String,
    pub(super) moments: Vec<KeptMoment>,
    /// What could not be told.
    pub(super) limits: Vec<String>,
}

/// The class of what is in no other.
pub(super) const UNKNOWN: &str = "unknown";

impl KeptMoment {
    pub(super) fn bytes(&self, class: &str) -> u64 {
        self.lines.iter().filter(|(own, _)| own == class).map(|(_, bytes)| bytes).sum()
    }

    fn of_value(answer: &Value) -> Option<Self> {
        let resident = &answer["resident"];
        let line = |line: &Value| Some((line["class"].as_str()?.to_owned(), line["bytes"].as_u64()?));
        Some(Self {
            time_ns: answer["time_unix_ns"].as_u64(),
            name: String::new(),
            rss_bytes: resident["rss_bytes"].as_u64()?,
            lines: resident["lines"].as_array()?.iter().map(line).collect::<Option<_>>()?,
        })
    }

    pub(super) fn json(&self) -> Value {
        let lines = self.lines.iter().map(|(class, bytes)| json!({"class": class, "bytes": bytes}));
        json!({
            "time_ns": self.time_ns,
            "name": self.name,
            "rss_bytes": self.rss_bytes,
            "lines": lines.collect::<Vec<_>>(),
            "unknown_bytes": self.bytes(UNKNOWN),
        })
    }
}

/// Reads an answer (`heapr explain PID --format json`) or a series of them (`--every`). `None`: the
/// file is something else.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<KeptMoments>> {
    if !may_be_answers(path) {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut found = KeptMoments::default();
    match serde_json::from_str::<Value>(&text) {
        Ok(answer) if answer["schema"] != "heapr.explain/1" => return Ok(None),
        Ok(answer) => found.add_answer(&answer),
        Err(_) => {
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            for (number, line) in lines.iter().enumerate() {
                match serde_json::from_str::<Value>(line) {
                    Ok(answer) if answer["schema"] == "heapr.explain/1" => found.add_answer(&answer),
                    // Whoever wrote it was ended in the middle of a line.
                    Err(_) if number > 0 && number + 1 == lines.len() => {
                        found.limits.push("the last look was cut off".to_owned());
                    }
                    _ if number == 0 => return Ok(None),
                    _ => {
                        anyhow::bail!("{}: line {} is no answer of heapr explain", path.display(), number + 1)
                    }
                }
            }
        }
    }
    let Some(first_ns) = found.moments.first().map(|moment| moment.time_ns) else {
        anyhow::bail!("{} says nothing of resident memory", path.display());
    };
    for moment in &mut found.moments {
        moment.time_ns =
            moment.time_ns.zip(first_ns).map(|(time_ns, first_ns)| time_ns.saturating_sub(first_ns));
    }
    Ok(Some(found))
}

/// Told by how it begins: snapshots of V8 are JSON, too.
fn may_be_answers(path: &Path) -> bool {
    let mut start = [0; 64];
    if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return false;
    }
    let Ok(read) = std::fs::File::open(path).and_then(|mut file| io::Read::read(&mut file, &mut start))
    else {
        return false;
    };
    let start = String::from_utf8_lossy(&start[..read]);
    start.trim_start().starts_with('{') && !start.contains("\"snapshot\"")
}

impl KeptMoments {
    fn add_answer(&mut self, answer: &Value) {
        let resident = &answer["resident"];
        if self.of.is_empty() {
            let program = resident["executable"].as_str().unwrap_or_default().rsplit('/').next();
            let pid = resident["pid"].as_u64().map_or_else(String::new, |pid| format!("process {pid}"));
            self.of = format!("{pid} {}", program.unwrap_or_default()).trim().to_owned();
        }
        self.moments.extend(KeptMoment::of_value(answer));
    }

    pub(super) fn last(&self) -> Option<&KeptMoment> {
        self.moments.last()
    }
}

/// A class in words; one of another version by its key.
pub(super) fn label(key: &str) -> String {
    let known = Class::ALL.iter().find(|class| class.key() == key);
    known.map_or_else(|| key.replace('_', " "), |class| class.label().to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn look(time_ns: u64, live_bytes: u64) -> String {
        format!(
            r#"{{"schema":"heapr.explain/1","time_unix_ns":{time_ns},"resident":{{"pid":7,"rss_bytes":{},"lines":[{{"class":"code","bytes":100}},{{"class":"live_blocks","bytes":{live_bytes}}}]}}}}"#,
            live_bytes + 100
        )
    }

    #[test]
    fn a_series_that_was_cut_off_is_read_up_to_there() {
        let text = format!("{}\n{}\n{{\"schema\": \"hea", look(1_000, 50), look(3_000, 70));
        let found = read(file(&text).path()).unwrap().unwrap();
        assert_eq!(found.moments.len(), 2);
        assert_eq!((found.moments[1].time_ns, found.moments[1].rss_bytes), (Some(2_000), 170));
        assert_eq!(found.moments[1].bytes("live_blocks"), 70);
        assert_eq!((found.limits.len(), found.of.as_str()), (1, "process 7"));
    }

    #[test]
    fn what_is_no_answer_is_left_to_others_and_a_broken_line_is_said() {
        for text in ["", "[]", "{\"snapshot\":{}}", "{\"schema\":\"other\"}", "{\n\"nodes\":"] {
            assert!(read(file(text).path()).unwrap().is_none(), "{text}");
        }
        let text = format!("{}\nbroken\n{}\n", look(1, 1), look(2, 2));
        assert!(read(file(&text).path()).unwrap_err().to_string().contains("line 2"));
        assert!(read(file("{\"schema\":\"heapr.explain/1\"}").path()).is_err());
    }
}
