//! Moment of a recording at which a heap was taken, as the heap's file tells: its name has the
//! process, and it was written then.

use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use serde::Serialize;

use crate::entry::{Content, Entry};

/// Time after the end of a recording in which heaps of its processes are still written.
const AFTER_NS: u64 = 60_000_000_000;

/// Place of a heap in a recording of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct TakenFacts {
    /// Number of the recording in the list of files.
    file: usize,
    /// Process, by the name of the heap's file.
    pid: u32,
    /// Time at which the heap's file was written; the recording's end, if that was earlier.
    time_ns: u64,
}

impl TakenFacts {
    /// Finds the recording of a heap among the open files.
    pub(crate) fn of(heap: &Path, entries: &[Arc<Entry>]) -> Option<Self> {
        let pid = pid_of_name(heap.file_name()?.to_str()?)?;
        let written = heap.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let written_ns = u64::try_from(written.as_nanos()).ok()?;
        entries.iter().enumerate().find_map(|(file, entry)| {
            let Content::Trace(trace) = entry.content() else { return None };
            let trace = trace.trace();
            let session = trace.session();
            let time_ns = written_ns.checked_sub(session.start_unix_ns)?;
            let is_within = time_ns <= trace.duration_ns().saturating_add(AFTER_NS);
            let is_of = trace.processes().iter().any(|process| process.pid == pid);
            (is_within && is_of).then(|| Self { file, pid, time_ns: time_ns.min(trace.duration_ns()) })
        })
    }
}

/// Process in the name of a heap's file: `heapr.7.2.heapsnapshot`, `java_pid7.hprof`, and Node's
/// `Heap.20261121.040213.7.0.001.heapsnapshot`.
fn pid_of_name(name: &str) -> Option<u32> {
    let parts: Vec<&str> = name.split('.').collect();
    let digits = match parts[..] {
        ["heapr", pid, ..] | ["Heap", _, _, pid, ..] => pid,
        [first, "hprof", ..] => first.strip_prefix("java_pid")?,
        _ => return None,
    };
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_in_the_name_of_a_heap() {
        for (name, pid) in [
            ("heapr.71.heapsnapshot", Some(71)),
            ("heapr.71.2.heapsnapshot.gz", Some(71)),
            ("heapr.71.hprof", Some(71)),
            ("java_pid71.hprof", Some(71)),
            ("Heap.20261121.040213.71.0.001.heapsnapshot", Some(71)),
            ("heapr.heapsnapshot", None),
            ("app.71.heapsnapshot", None),
            ("java_pid.hprof", None),
            ("", None),
        ] {
            assert_eq!(pid_of_name(name), pid, "{name}");
        }
    }
}
