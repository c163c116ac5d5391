//! The file format of <https://www.speedscope.app> (schema 0.0.1): one sampled profile.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::json;

use crate::{Profile, SampleFrame};

/// Writes it.
pub(crate) fn write(out: &mut dyn Write, profile: &Profile<'_>) -> io::Result<()> {
    let (&Profile { samples, value, .. }, title) = (profile, profile.heading());
    let mut numbers: HashMap<&SampleFrame, usize> = HashMap::new();
    let mut frames = Vec::new();
    let mut stacks = Vec::new();
    let mut weights = Vec::new();
    for sample in samples {
        let amount = value.of(&sample.amounts);
        if amount == 0 {
            continue;
        }
        let stack: Vec<usize> = sample
            .frames
            .iter()
            .rev()
            .map(|frame| {
                *numbers.entry(frame).or_insert_with(|| {
                    let mut entry = json!({ "name": frame.name });
                    if !frame.file.is_empty() {
                        entry["file"] = json!(frame.file);
                        entry["line"] = json!(frame.line);
                    }
                    frames.push(entry);
                    frames.len() - 1
                })
            })
            .collect();
        stacks.push(stack);
        weights.push(amount);
    }
    let whole: u64 = weights.iter().sum();
    let document = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("heapr ", env!("CARGO_PKG_VERSION")),
        "name": title,
        "activeProfileIndex": 0,
        "shared": { "frames": frames },
        "profiles": [{
            "type": "sampled",
            "name": title,
            "unit": if value.is_bytes() { "bytes" } else { "none" },
            "startValue": 0,
            "endValue": whole,
            "samples": stacks,
            "weights": weights,
        }],
    });
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}
