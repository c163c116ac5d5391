//! Source lines that allocate, with their text where the file is here.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

/// Lines that are shown around one.
const AROUND: usize = 2;
/// Larger files are no sources.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// The groups of a report by line, each with the text around it.
pub(crate) fn text(report: &Value, sort: &str) -> String {
    let key = match sort {
        "soc" => "outstanding_count",
        "st" => "total_bytes",
        "stc" => "total_count",
        "src" => "realloc_count",
        "peak" => "peak_bytes",
        _ => "outstanding_bytes",
    };
    let mut text = String::new();
    for group in report["groups"].as_array().into_iter().flatten() {
        let frame = &group["frames"][0];
        let word = |name: &str| frame[name].as_str().unwrap_or_default();
        let (file, line) = (word("file"), frame["line"].as_u64().unwrap_or(0));
        let place = if file.is_empty() { word("module").to_owned() } else { format!("{file}:{line}") };
        let _ = writeln!(text, "{} {key}  {}  {place}", group[key], word("symbol"));
        if let Some(lines) = around(Path::new(file), line) {
            text.push_str(&lines);
        }
    }
    if text.is_empty() { "nothing is counted\n".to_owned() } else { text }
}

/// The line and those around it, numbered.
fn around(file: &Path, line: u64) -> Option<String> {
    let line = usize::try_from(line).ok()?.checked_sub(1)?;
    // (Names come from a trace: of devices and pipes nothing is read.)
    let is_source = file.is_absolute() && file.metadata().is_ok_and(|facts| facts.is_file());
    if !is_source {
        return None;
    }
    let mut content = Vec::new();
    std::fs::File::open(file).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut content).ok()?;
    let content = String::from_utf8_lossy(&content);
    let first = line.saturating_sub(AROUND);
    let mut text = String::new();
    for (index, code) in content.lines().enumerate().skip(first).take(line + AROUND + 1 - first) {
        let mark = if index == line { '>' } else { ' ' };
        let code: String =
            code.chars().take(160).map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect();
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
    let shown = text(&serde_json::json!({"groups": [{"frames": [frame], "outstanding_bytes": 7}]}), "so");
    assert!(shown.contains("7 outstanding_bytes  keep") && shown.contains(">     4  four"), "{shown}");
    assert!(!shown.contains("one"), "{shown}");
    assert_eq!(around(Path::new("/dev/zero"), 1), None);
    assert_eq!(around(&file, 0), None);
}
