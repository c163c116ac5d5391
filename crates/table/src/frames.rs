//! Stacks printed below their rows.

use std::io::{self, Write};

use crate::cell::NO_STACK;
use crate::plain::cut_middle;

/// Writes the frames of a stack, one per line.
pub(crate) fn write_stack(
    out: &mut dyn Write,
    frames: &[String],
    depth: usize,
    width: usize,
) -> io::Result<()> {
    if frames.is_empty() {
        writeln!(out, "      {NO_STACK}")?;
    }
    // Repeated calls of one function are one line, so that its caller is visible.
    let runs: Vec<&[String]> = frames.chunk_by(|one, other| one == other).collect();
    for run in runs.iter().take(depth) {
        let times = if run.len() > 1 { format!(" ({} times)", run.len()) } else { String::new() };
        let room = width.saturating_sub(6 + times.len());
        writeln!(out, "      {}{times}", cut_middle(&run[0], room))?;
    }
    let left_out: usize = runs.iter().skip(depth).map(|run| run.len()).sum();
    if left_out > 0 {
        writeln!(out, "      … {left_out} more; --depth N shows them")?;
    }
    writeln!(out)
}
