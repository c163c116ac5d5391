//! File format of <https://www.speedscope.app> (schema 0.0.1): one sampled profile.

use std::fmt::Write as _;
use std::io::{self, Write};

use heapr_table::json_text::{JsonText, escaped};
use serde_json::json;

use crate::{Profile, SampleFrame};

/// Writes the profile, stack by stack.
pub(crate) fn write(out: &mut dyn Write, profile: &Profile<'_>) -> io::Result<()> {
    let (&Profile { samples, value, .. }, title) = (profile, profile.heading());
    let out = &mut JsonText::new(out);
    let amounts = || samples.rows().iter().map(|row| value.of(&row.amounts));
    let whole = amounts().fold(0, u64::saturating_add);
    let title = escaped(&json!(title).to_string());
    let exporter = concat!("heapr ", env!("CARGO_PKG_VERSION"));
    let unit = if value.is_bytes() { "bytes" } else { "none" };
    write!(
        out,
        r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"{exporter}","name":{title},"activeProfileIndex":0,"shared":{{"frames":["#
    )?;
    for (place, frame) in samples.frames().iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        write!(out, "{comma}{}", entry(frame))?;
    }
    write!(
        out,
        r#"]}},"profiles":[{{"type":"sampled","name":{title},"unit":"{unit}","startValue":0,"endValue":{whole},"samples":["#
    )?;
    let mut stack: Vec<u32> = Vec::new();
    let mut text = String::new();
    let mut is_first = true;
    for row in samples.rows().iter().filter(|row| value.of(&row.amounts) > 0) {
        stack.clear();
        stack.extend(samples.frame_numbers(row.stack));
        text.clear();
        text.push_str(if is_first { "[" } else { ",[" });
        for (place, number) in stack.iter().rev().enumerate() {
            if place > 0 {
                text.push(',');
            }
            // Writing to a String cannot fail.
            let _ = write!(text, "{number}");
        }
        text.push(']');
        out.write_all(text.as_bytes())?;
        is_first = false;
    }
    write!(out, r#"],"weights":["#)?;
    for (place, amount) in amounts().filter(|&amount| amount > 0).enumerate() {
        let comma = if place == 0 { "" } else { "," };
        write!(out, "{comma}{amount}")?;
    }
    writeln!(out, "]}}]}}")
}

fn entry(frame: &SampleFrame) -> serde_json::Value {
    let mut entry = json!({ "name": frame.name });
    if !frame.file.is_empty() {
        entry["file"] = json!(frame.file);
        entry["line"] = json!(frame.line);
    }
    entry
}
