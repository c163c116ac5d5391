//! Saved answers of `heapr explain`: the resident set at moments, read again.

use std::ops::Range;

use serde_json::{Value, json};

use crate::account::Account;
use crate::class::class_label;
use crate::saved_detail::{SavedDetail, SavedLine};

/// Reason why a text is not a usable saved answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SavedError {
    /// A line of a series that is not an answer.
    #[error("line {line} is no answer of heapr explain")]
    Line {
        /// Line number, from 1 on.
        line: usize,
    },
    /// The answer has no resident memory: it is of another kind.
    #[error("it says nothing of resident memory")]
    NothingResident,
}

/// The resident set at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedMoment {
    /// Time since the first moment; `None` for an answer that was saved without its time.
    pub time_ns: Option<u64>,
    /// Name of the moment; empty without one.
    pub name: String,
    /// Resident bytes.
    pub rss_bytes: u64,
    /// Class and bytes; they add up to `rss_bytes`.
    pub lines: Vec<(String, u64)>,
    /// Half of the 95 % interval of the live bytes, and so of the unknown bytes; 0: counted
    /// exactly.
    pub live_plus_minus: u64,
    /// Range of the text with the moment's details; empty without details.
    pub(crate) place: Range<usize>,
}

/// Moments of one process, by time.
#[derive(Debug, Clone, Default)]
pub struct SavedMoments {
    /// Name of the process in texts.
    pub of: String,
    /// Moments, in order.
    pub moments: Vec<SavedMoment>,
    /// Limits: facts that could not be determined.
    pub limits: Vec<String>,
}

/// Key of the class of unknown memory.
pub(crate) const UNKNOWN: &str = "unknown";
/// Key of the class of live blocks.
pub(crate) const LIVE_BLOCKS: &str = "live_blocks";

impl SavedMoment {
    /// Creates a moment from an account.
    pub fn of_account(account: &Account) -> Self {
        let lines = account.lines().into_iter();
        Self {
            rss_bytes: account.pages.rss_bytes,
            lines: lines.map(|line| (line.class.key().to_owned(), line.pages.rss_bytes)).collect(),
            ..Self::default()
        }
    }

    /// Bytes of a class.
    pub fn bytes(&self, class: &str) -> u64 {
        self.lines.iter().filter(|(own, _)| own == class).map(|(_, bytes)| bytes).sum()
    }

    /// Half of the 95 % interval of a class's bytes; 0 if they were counted.
    pub fn plus_minus(&self, class: &str) -> u64 {
        if [LIVE_BLOCKS, UNKNOWN].contains(&class) { self.live_plus_minus } else { 0 }
    }

    /// Reads a moment from a JSON value with `rss_bytes` and `lines`.
    fn of_value(resident: &Value) -> Option<Self> {
        let line = |line: &Value| Some((line["class"].as_str()?.to_owned(), line["bytes"].as_u64()?));
        Some(Self {
            time_ns: resident["time_ns"].as_u64(),
            name: resident["name"].as_str().unwrap_or_default().to_owned(),
            rss_bytes: resident["rss_bytes"].as_u64()?,
            lines: resident["lines"].as_array()?.iter().map(line).collect::<Option<_>>()?,
            live_plus_minus: resident["unknown_bytes_plus_minus"].as_u64().unwrap_or(0),
            place: 0..0,
        })
    }

    /// Details of the moment; `text` is the text that it was read from.
    pub fn detail(&self, text: &str) -> SavedDetail {
        let mut detail = text.get(self.place.clone()).map(SavedDetail::parse).unwrap_or_default();
        if detail.lines.is_empty() {
            detail.lines = self
                .lines
                .iter()
                .map(|(class, bytes)| SavedLine {
                    class: class.clone(),
                    label: class_label(class),
                    bytes: *bytes,
                    bytes_plus_minus: self.plus_minus(class),
                    ..SavedLine::default()
                })
                .collect();
        }
        detail
    }

    /// JSON for programs.
    pub fn json(&self) -> Value {
        let line = |(class, bytes): &(String, u64)| {
            let mut line = json!({"class": class, "bytes": bytes});
            if let plus_minus @ 1.. = self.plus_minus(class) {
                line["bytes_plus_minus"] = plus_minus.into();
            }
            line
        };
        let mut value = json!({
            "time_ns": self.time_ns,
            "name": self.name,
            "rss_bytes": self.rss_bytes,
            "lines": self.lines.iter().map(line).collect::<Vec<_>>(),
            "unknown_bytes": self.bytes(UNKNOWN),
        });
        if self.live_plus_minus > 0 {
            value["unknown_bytes_plus_minus"] = self.live_plus_minus.into();
        }
        value
    }
}

impl SavedMoments {
    /// Whether a text may be saved answers, by its start. Snapshots of V8 are JSON, too.
    pub fn may_be(start: &[u8]) -> bool {
        let start = String::from_utf8_lossy(start);
        start.trim_start().starts_with('{') && !start.contains("\"snapshot\"")
    }

    /// Reads an answer (`heapr explain PID --format json`) or a series of answers (`--every`).
    /// `None`: the text is of another format.
    ///
    /// # Errors
    /// Fails if a line of a series is broken, or if the text says nothing of resident memory.
    pub fn parse(text: &str) -> Result<Option<Self>, SavedError> {
        let mut found = Self::default();
        match serde_json::from_str::<Value>(text) {
            Ok(answer) if answer["schema"] != "heapr.explain/1" => return Ok(None),
            Ok(answer) => found.add_answer(&answer, 0..text.len()),
            Err(_) => {
                let mut begin = 0;
                let places = text.split_inclusive('\n').map(|line| {
                    begin += line.len();
                    begin - line.len()..begin
                });
                let places: Vec<Range<usize>> =
                    places.filter(|place| !text[place.clone()].trim().is_empty()).collect();
                for (number, place) in places.iter().enumerate() {
                    match serde_json::from_str::<Value>(&text[place.clone()]) {
                        Ok(answer) if answer["schema"] == "heapr.explain/1" => {
                            found.add_answer(&answer, place.clone());
                        }
                        // The writer was ended in the middle of a line.
                        Err(_) if number > 0 && number + 1 == places.len() => {
                            found.limits.push("the last look was cut off".to_owned());
                        }
                        _ if number == 0 => return Ok(None),
                        _ => return Err(SavedError::Line { line: number + 1 }),
                    }
                }
            }
        }
        let first_ns = found.moments.first().map(|moment| moment.time_ns);
        let first_ns = first_ns.ok_or(SavedError::NothingResident)?;
        for moment in &mut found.moments {
            moment.time_ns =
                moment.time_ns.zip(first_ns).map(|(time_ns, first_ns)| time_ns.saturating_sub(first_ns));
        }
        Ok(Some(found))
    }

    fn add_answer(&mut self, answer: &Value, place: Range<usize>) {
        let resident = &answer["resident"];
        if self.of.is_empty() {
            let program = resident["executable"].as_str().unwrap_or_default().rsplit('/').next();
            let pid = resident["pid"].as_u64().map_or_else(String::new, |pid| format!("process {pid}"));
            let of = format!("{pid} {}", program.unwrap_or_default());
            self.of = resident["of"].as_str().unwrap_or(&of).trim().to_owned();
        }
        let not_told = resident["not_told"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for limit in not_told {
            if !self.limits.iter().any(|known| known == limit) {
                self.limits.push(limit.to_owned());
            }
        }
        // An answer of a recording contains all moments, and repeats the last one.
        match answer["moments"].as_array() {
            Some(moments) => self.moments.extend(moments.iter().filter_map(SavedMoment::of_value)),
            None => self.moments.extend(
                SavedMoment::of_value(resident)
                    .map(|moment| SavedMoment { time_ns: answer["time_unix_ns"].as_u64(), ..moment }),
            ),
        }
        if let Some(last) = self.moments.last_mut() {
            last.place = place;
        }
    }

    /// The last moment.
    pub fn last(&self) -> Option<&SavedMoment> {
        self.moments.last()
    }

    /// Thins the moments to at most `most`: of neighbours the one with the most resident bytes
    /// stays. The last moment stays.
    pub fn thinned(&mut self, most: usize) {
        let step = self.moments.len().saturating_sub(1).div_ceil(most.max(2) - 1).max(1);
        if step == 1 {
            return;
        }
        let Some(last) = self.moments.pop() else { return };
        let moments = std::mem::take(&mut self.moments);
        let most_of = |part: &[SavedMoment]| part.iter().max_by_key(|moment| moment.rss_bytes).cloned();
        self.moments = moments.chunks(step).filter_map(most_of).collect();
        self.moments.push(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(time_ns: u64, live_bytes: u64) -> String {
        format!(
            r#"{{"schema":"heapr.explain/1","time_unix_ns":{time_ns},"resident":{{"pid":7,"rss_bytes":{},"lines":[{{"class":"code","bytes":100}},{{"class":"live_blocks","bytes":{live_bytes}}}]}}}}"#,
            live_bytes + 100
        )
    }

    #[test]
    fn a_series_that_was_cut_off_is_read_up_to_there() {
        let text = format!("{}\n{}\n{{\"schema\": \"hea", look(1_000, 50), look(3_000, 70));
        let found = SavedMoments::parse(&text).unwrap().unwrap();
        assert_eq!(found.moments.len(), 2);
        assert_eq!((found.moments[1].time_ns, found.moments[1].rss_bytes), (Some(2_000), 170));
        assert_eq!(found.moments[1].bytes("live_blocks"), 70);
        assert_eq!((found.limits.len(), found.of.as_str()), (1, "process 7"));
    }

    #[test]
    fn what_is_no_answer_is_left_to_others_and_a_broken_line_is_said() {
        assert!(!SavedMoments::may_be(b"{\"snapshot\":{}}") && SavedMoments::may_be(b" {\"schema\""));
        for text in ["[]", "{\"snapshot\":{}}", "{\"schema\":\"other\"}", "{\n\"nodes\":"] {
            assert!(SavedMoments::parse(text).unwrap().is_none(), "{text}");
        }
        let text = format!("{}\nbroken\n{}\n", look(1, 1), look(2, 2));
        assert_eq!(SavedMoments::parse(&text).unwrap_err(), SavedError::Line { line: 2 });
        for text in ["", "{\"schema\":\"heapr.explain/1\"}"] {
            assert_eq!(SavedMoments::parse(text).unwrap_err(), SavedError::NothingResident, "{text}");
        }
    }

    #[test]
    fn a_recordings_moments_are_read_from_one_answer_and_the_last_one_has_its_detail() {
        let moment = |time_ns, bytes| {
            format!(
                r#"{{"time_ns":{time_ns},"name":"n","rss_bytes":{bytes},"lines":[{{"class":"files","bytes":{bytes}}}]}}"#
            )
        };
        let (first, last) = (moment(5, 40), moment(9, 50));
        let text = format!(
            r#"{{"schema":"heapr.explain/1","findings":[{{"sentence":"so it is"}}],"resident":{{"of":"process 3","rss_bytes":50,"lines":[{{"class":"files","bytes":50,"parts":[{{"name":"a","bytes":50}}]}}],"not_told":["much"]}},"moments":[{first},{last}]}}"#
        );
        let found = SavedMoments::parse(&text).unwrap().unwrap();
        assert_eq!((found.of.as_str(), found.moments.len(), found.limits.len()), ("process 3", 2, 1));
        assert_eq!(found.moments[1].time_ns, Some(4));
        let detail = found.moments[1].detail(&text);
        assert_eq!((detail.lines[0].parts[0].bytes, detail.lines[0].label.as_str()), (50, "files"));
        assert_eq!(detail.findings[0].sentence, "so it is");
        assert_eq!(found.moments[0].detail(&text).lines[0].bytes, 40);
    }

    #[test]
    fn of_many_moments_the_last_one_and_the_highest_are_left() {
        let moment = |rss_bytes| SavedMoment { rss_bytes, ..SavedMoment::default() };
        let mut many = SavedMoments {
            moments: (0..1000).map(|at| moment(if at == 333 { 9000 } else { at })).collect(),
            ..SavedMoments::default()
        };
        many.thinned(100);
        assert!(many.moments.len() <= 100 && many.moments.iter().any(|moment| moment.rss_bytes == 9000));
        assert_eq!(many.last().unwrap().rss_bytes, 999);
    }
}
