//! One reading of a session: the server's answers as values.

use heapr_table::plain::printable;
use serde_json::Value;

use super::recorder_share::RecorderShare;

/// Amount with half of its 95 % interval; 0: counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) value: u64,
    pub(super) plus_minus: u64,
}

impl Amount {
    /// Reads an amount of an answer; `None`: unknown.
    fn of(answer: &Value, name: &str) -> Option<Self> {
        let value = answer[name].as_u64()?;
        let plus_minus = answer[format!("{name}_plus_minus")].as_u64().unwrap_or(0);
        Some(Self { value, plus_minus })
    }
}

/// Amounts of a function, or of all; `None`: unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) live_bytes: Option<Amount>,
    pub(super) live_count: Option<Amount>,
    pub(super) alloc_count: Option<Amount>,
    pub(super) alloc_bytes: Option<Amount>,
}

/// Function of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Key that is unique in a reading: symbol and path of the module.
    pub(super) key: String,
    /// Symbol and module.
    pub(super) name: String,
    /// Place in the source, `file.c:12`; empty: unknown.
    pub(super) place: String,
    /// Id of the largest stack.
    pub(super) stack: Option<String>,
    pub(super) figures: Figures,
}

/// Process of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) is_traced: bool,
}

/// State of a session at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Reading {
    /// Time since the session's start up to which events are counted, ns.
    pub(super) time_ns: u64,
    /// `recording`, `full`, `ended`, `cancelled` or `lost`.
    pub(super) stage: String,
    /// Rate of sampling, as on the command line; `None`: all are recorded.
    pub(super) sample: Option<String>,
    /// Events that are missing, at least.
    pub(super) events_lost: u64,
    pub(super) totals: Figures,
    pub(super) rows: Vec<Row>,
    /// True if the table has more functions than rows.
    pub(super) is_cut: bool,
    /// Live bytes over the last minutes, oldest first.
    pub(super) curve: Vec<u64>,
    /// Time that the curve covers, ns.
    pub(super) curve_ns: u64,
    /// Resident bytes of the traced processes; `None`: unknown.
    pub(super) resident_bytes: Option<u64>,
    pub(super) recorder: RecorderShare,
    pub(super) processes: Vec<Process>,
    /// First sentence of the findings.
    pub(super) finding: Option<String>,
    /// Reason for which the figures are old or incomplete.
    pub(super) trouble: Option<String>,
}

impl Reading {
    /// Reads the answer of `session/status`.
    pub(super) fn take_status(&mut self, answer: &Value) {
        let status = &answer["status"];
        self.time_ns = answer["shown_until_ns"].as_u64().unwrap_or(0);
        self.stage = answer["state"].as_str().unwrap_or_default().to_owned();
        self.sample = status["sample"].as_str().map(str::to_owned);
        self.events_lost = status["events_lost"].as_u64().unwrap_or(0);
        let text = |value: &Value| value.as_str().map(printable);
        let incomplete = |error: String| format!("the recording is incomplete: {error}");
        self.trouble = text(&answer["trouble"]).or_else(|| text(&status["write_error"]).map(incomplete));
        let process = |value: &Value| {
            Some(Process {
                pid: u32::try_from(value["pid"].as_u64()?).ok()?,
                name: printable(value["name"].as_str().unwrap_or_default()),
                is_traced: value["is_alive"].as_bool()? && value["disabled"].is_null(),
            })
        };
        self.processes = status["processes"].as_array().into_iter().flatten().filter_map(process).collect();
    }

    /// Reads the answer of `own-functions`.
    pub(super) fn take_functions(&mut self, answer: &Value) {
        let totals = &answer["totals"];
        self.totals = Figures {
            live_bytes: Amount::of(totals, "outstanding_bytes"),
            live_count: Amount::of(totals, "outstanding_count"),
            alloc_count: Amount::of(totals, "alloc_count"),
            alloc_bytes: Amount::of(totals, "alloc_bytes"),
        };
        self.rows = answer["own_functions"].as_array().into_iter().flatten().map(row).collect();
        self.is_cut = answer["match_count"].as_u64() > Some(self.rows.len() as u64);
    }

    /// Reads the answer of `timeline`.
    pub(super) fn take_curve(&mut self, answer: &Value) {
        let values = answer["live_bytes"].as_array().into_iter().flatten();
        self.curve = values.filter_map(Value::as_u64).collect();
        let time = |name: &str| answer[name].as_u64().unwrap_or(0);
        self.curve_ns = time("to_ns").saturating_sub(time("from_ns"));
    }
}

/// First sentence of the answer of `findings`. Of a recording that goes on, the end of its file is
/// no finding.
pub(super) fn first_finding(answer: &Value, is_recording: bool) -> Option<String> {
    let is_end = |finding: &&Value| {
        finding["kind"] == "unseen" && finding["evidence"].as_array().is_some_and(Vec::is_empty)
    };
    let mut findings = answer["findings"].as_array().into_iter().flatten();
    let first = findings.find(|finding| !(is_recording && is_end(finding)))?["sentence"].as_str();
    first.filter(|text| !text.is_empty()).map(printable)
}

fn row(answer: &Value) -> Row {
    let frame = &answer["frame"];
    let text = |name: &str| frame[name].as_str().map(printable);
    let file_name = |path: String| path.rsplit('/').next().unwrap_or_default().to_owned();
    let path = text("module");
    let module = path.clone().map(file_name);
    let name = match (text("symbol"), module) {
        (Some(symbol), Some(module)) => format!("{symbol} [{module}]"),
        (Some(symbol), None) => symbol,
        (None, Some(module)) => format!("(code without names) [{module}]"),
        (None, None) if frame.is_null() => "(no stack)".to_owned(),
        (None, None) => "(code outside of all files)".to_owned(),
    };
    let place = match (text("file").map(file_name), frame["line"].as_u64()) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (file, _) => file.unwrap_or_default(),
    };
    Row {
        key: format!("{name} {}", path.unwrap_or_default()),
        name,
        place,
        stack: answer["stack"].as_str().map(str::to_owned),
        figures: Figures {
            live_bytes: Amount::of(answer, "outstanding_bytes"),
            live_count: Amount::of(answer, "outstanding_count"),
            alloc_count: Amount::of(answer, "total_count"),
            alloc_bytes: Amount::of(answer, "total_bytes"),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_recording_that_goes_on_has_no_finding_on_its_end() {
        let answer = json!({"findings": [
            {"kind": "unseen", "sentence": "nothing yet", "evidence": []},
            {"kind": "growth", "sentence": "it grows", "evidence": []},
        ]});
        assert_eq!(first_finding(&answer, true).as_deref(), Some("it grows"));
        assert_eq!(first_finding(&answer, false).as_deref(), Some("nothing yet"));
        let damaged = json!({"findings": [{"kind": "unseen", "sentence": "cut", "evidence": ["at 7"]}]});
        assert_eq!(first_finding(&damaged, true).as_deref(), Some("cut"));
    }

    #[test]
    fn what_is_unknown_is_no_zero() {
        let mut reading = Reading::default();
        reading.take_functions(&json!({
            "totals": {"outstanding_bytes": 7, "outstanding_bytes_plus_minus": 2, "outstanding_count": null},
            "match_count": 2,
            "own_functions": [{
                "frame": {"symbol": "a\u{1b}b", "module": "/lib/x.so", "file": "/src/a.c", "line": 3},
                "stack": "s1.2", "outstanding_bytes": 7, "total_count": 1,
            }],
        }));
        assert_eq!(reading.totals.live_bytes, Some(Amount { value: 7, plus_minus: 2 }));
        assert_eq!(reading.totals.live_count, None);
        assert!(reading.is_cut);
        let row = &reading.rows[0];
        assert_eq!((row.name.as_str(), row.place.as_str()), ("a\u{fffd}b [x.so]", "a.c:3"));
        assert_eq!(row.figures.live_count, None);
        reading.take_functions(&json!({}));
        assert!(reading.rows.is_empty() && !reading.is_cut);
    }
}
