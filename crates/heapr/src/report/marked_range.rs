//! Range of time between two blocks that a program allocates as marks, each of a size of its own.

use std::path::Path;

use heapr_trace::{Action, Trace};

/// Finds the range, as [`heapr_filters::FilterArguments::range`] has it: from behind the first mark
/// to the second one.
///
/// # Errors
/// A mark is not in the trace exactly once.
pub(super) fn range(trace: &Trace, file: &Path, sizes_bytes: &[u64]) -> anyhow::Result<Vec<String>> {
    let mut times = vec![Vec::new(); sizes_bytes.len()];
    let mut events = trace.events(0, u64::MAX);
    while let Some(batch) = events.next_batch()? {
        for event in batch {
            let Action::Alloc { size_bytes, .. } = event.action else { continue };
            if let Some(index) = sizes_bytes.iter().position(|&mark| mark == size_bytes) {
                times[index].push(event.time_ns);
            }
        }
    }
    let [begin, end] = times.as_slice() else { anyhow::bail!("--between-blocks takes two sizes") };
    let ([begin], [end]) = (begin.as_slice(), end.as_slice()) else {
        anyhow::bail!("{}: begin or end of what was recorded is not in the trace", file.display())
    };
    Ok(vec![format!("{}ns", begin + 1), format!("{end}ns")])
}
