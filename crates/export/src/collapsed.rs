//! Folded stacks: a line for each stack, with the frames from the root joined by semicolons, a
//! space, and the amount.

use std::io::{self, Write};

use heapr_table::plain::is_harmless;

use crate::Profile;
use crate::name_tree::NameTree;

/// Writes the profile. Stacks of amount 0 are left out; equal lines are added up.
pub(crate) fn write(out: &mut dyn Write, profile: &Profile<'_>) -> io::Result<()> {
    let tree = NameTree::new(profile.samples, profile.value, clean);
    let mut line = String::new();
    // Nodes whose lines are to be written, each with the length of its caller's line.
    let mut open = vec![(0, 0)];
    while let Some((node, end)) = open.pop() {
        line.truncate(end);
        if node != 0 {
            if !line.is_empty() {
                line.push(';');
            }
            line.push_str(tree.name(node));
        }
        let amount = tree.own(node).amount;
        if amount > 0 {
            let name = if line.is_empty() { "(no stack)" } else { &line };
            writeln!(out, "{name} {amount}")?;
        }
        let end = line.len();
        open.extend(tree.callees(node).iter().rev().map(|&callee| (callee, end)));
    }
    Ok(())
}

/// Replaces the characters of a name that separate frames or lines.
fn clean(name: &str) -> String {
    name.replace(';', ":").replace(|c: char| !is_harmless(c), " ")
}

#[cfg(test)]
mod tests {
    use heapr_query::Metric;
    use heapr_trace::Amounts;

    use super::*;
    use crate::{SampleFrame, Samples};

    #[test]
    fn stacks_start_at_the_root_and_names_cannot_break_lines() {
        let frame = |name: &str| SampleFrame { name: name.to_owned(), ..SampleFrame::default() };
        let stack = |names: &[&str], outstanding_bytes| {
            let frames = names.iter().map(|name| frame(name)).collect();
            (frames, Amounts { outstanding_bytes, ..Amounts::default() })
        };
        let samples = Samples::of_stacks([
            stack(&["a;b\n", "main"], 3),
            stack(&["a;b\u{202e}", "main"], 4),
            stack(&["c", "main"], 0),
            stack(&["main"], 9),
            stack(&[], 2),
            stack(&["a", "a", "main"], 5),
        ]);
        let mut out = Vec::new();
        let profile = Profile::new(&samples, Metric::default(), "");
        write(&mut out, &profile).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "(no stack) 2\nmain 9\nmain;a;a 5\nmain;a:b  7\n");
    }
}
