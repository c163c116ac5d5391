//! Source lines that allocate, with their text if the file exists on this machine.

use heapr_table::plain::is_harmless;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use heapr_query::Metric;
use serde_json::Value;

/// Number of lines shown before and behind a line.
const AROUND: usize = 2;
/// Largest number of bytes read of a source file.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// Lines of user code that the stacks of a report lead to, each with the text around it.
pub(crate) fn text(report: &Value, sort: &str, top: usize) -> String {
    let key = Metric::of_key(sort).map_or("outstanding_bytes", Metric::name);
    let half_key = heapr_table::interval_key(key);
    let mut lines: BTreeMap<(&str, u64, &str), Sum> = BTreeMap::new();
    for group in report["groups"].as_array().into_iter().flatten() {
        // A stack without user code is represented by its innermost frame.
        let own = group["own_frame"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(0);
        let frame = &group["frames"][own];
        let word = |name: &str| frame[name].as_str().unwrap_or_default();
        let place = if word("file").is_empty() { word("module") } else { word("file") };
        let line = (place, frame["line"].as_u64().unwrap_or(0), word("symbol"));
        lines.entry(line).or_default().add(&group[key], &group[&half_key]);
    }
    let mut lines: Vec<_> = lines.into_iter().filter(|(_, sum)| sum.amount > 0).collect();
    lines.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.amount));
    let mut text = String::new();
    for ((place, line, symbol), sum) in lines.into_iter().take(top) {
        let _ = writeln!(text, "{sum} {key}  {symbol}  {place}:{line}");
        if let Some(code) = around(Path::new(place), line) {
            text.push_str(&code);
        }
    }
    if text.is_empty() { "nothing is counted\n".to_owned() } else { text }
}

/// Sum over stacks. Each is estimated independently: the squares of their intervals add up.
#[derive(Default)]
struct Sum {
    amount: u64,
    half_square: f64,
}

impl Sum {
    fn add(&mut self, amount: &Value, half: &Value) {
        self.amount += amount.as_u64().unwrap_or(0);
        self.half_square += half.as_f64().unwrap_or(0.0).powi(2);
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.half_square.sqrt().round() as u64 {
            0 => write!(formatter, "{}", self.amount),
            half => write!(formatter, "{} ± {half}", self.amount),
        }
    }
}

/// The line with its neighbours, numbered.
fn around(file: &Path, line: u64) -> Option<String> {
    let line = usize::try_from(line).ok()?.checked_sub(1)?;
    // Names come from a trace.
    if !file.is_absolute() {
        return None;
    }
    let mut content = Vec::new();
    heapr_files::regular(file).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut content).ok()?;
    let content = String::from_utf8_lossy(&content);
    let first = line.saturating_sub(AROUND);
    let mut text = String::new();
    for (index, code) in content.lines().enumerate().skip(first).take(line + AROUND + 1 - first) {
        let mark = if index == line { '>' } else { ' ' };
        let code: String =
            code.chars().take(160).map(|c| if is_harmless(c) || c == '\t' { c } else { ' ' }).collect();
        let _ = writeln!(text, "  {mark} {:>5}  {code}", index + 1);
    }
    Some(text)
}

#[test]
fn a_line_is_shown_with_its_neighbours_and_a_device_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.c");
    std::fs::write(&file, "one\ntwo\nthree\nfour\nfive\nsix\n").unwrap();
    let frame = serde_json::json!({"symbol": "keep", "file": file, "line": 4});
    let inner = serde_json::json!({"symbol": "grow", "module": "libstdc++.so.6"});
    let group = |bytes: u64| serde_json::json!({"frames": [inner, frame], "own_frame": 1, "outstanding_bytes": bytes});
    let shown = text(&serde_json::json!({"groups": [group(3), group(4)]}), "so", 5);
    assert!(shown.contains("7 outstanding_bytes  keep") && shown.contains(">     4  four"), "{shown}");
    assert!(!shown.contains("one"), "{shown}");
    let estimate = |bytes: u64| {
        let mut group = group(bytes);
        group["outstanding_bytes_plus_minus"] = bytes.into();
        group
    };
    let shown = text(&serde_json::json!({"groups": [estimate(3), estimate(4)]}), "so", 5);
    assert!(shown.contains("7 ± 5 outstanding_bytes  keep"), "{shown}");
    assert_eq!(around(Path::new("/dev/zero"), 1), None);
    assert_eq!(around(&file, 0), None);
}
