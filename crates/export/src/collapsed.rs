//! One line for each stack: frames from the root, joined by semicolons, a space, the amount.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::Profile;

/// Writes it. Stacks of amount 0 are left out; equal lines are added up.
pub(crate) fn write(out: &mut dyn Write, &Profile { samples, value, .. }: &Profile<'_>) -> io::Result<()> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for sample in samples {
        let amount = value.of(&sample.amounts);
        if amount == 0 {
            continue;
        }
        let names: Vec<String> = sample.frames.iter().rev().map(|frame| clean(&frame.name)).collect();
        let line = if names.is_empty() { "(no stack)".to_owned() } else { names.join(";") };
        *lines.entry(line).or_default() += amount;
    }
    for (line, amount) in lines {
        writeln!(out, "{line} {amount}")?;
    }
    Ok(())
}

/// A name without what separates frames and lines.
fn clean(name: &str) -> String {
    name.replace(';', ":").replace(|c: char| c.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use heapr_trace::Amounts;

    use super::*;
    use heapr_query::Metric;

    use crate::{Sample, SampleFrame};

    #[test]
    fn stacks_start_at_the_root_and_names_cannot_break_lines() {
        let frame = |name: &str| SampleFrame {
            name: name.to_owned(),
            module: String::new(),
            file: String::new(),
            line: 0,
        };
        let sample = |names: [&str; 2], outstanding_bytes| Sample {
            frames: names.map(frame).to_vec(),
            amounts: Amounts { outstanding_bytes, ..Amounts::default() },
        };
        let samples = [sample(["a;b\n", "main"], 3), sample(["a;b\n", "main"], 4), sample(["c", "main"], 0)];
        let mut out = Vec::new();
        let profile = Profile::new(&samples, Metric::default(), "");
        write(&mut out, &profile).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "main;a:b  7\n");
    }
}
