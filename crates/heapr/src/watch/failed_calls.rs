//! Allocations that failed shortly before a process ended.

use std::path::Path;

use anyhow::Context as _;
use heapr_incident::FAILED_SECONDS;
use heapr_server::answer_json;
use serde_json::{Value, json};

use super::holders::{LAG_NS_MAX, Reader, last_moment_ns};
use crate::incidents::latest;
use crate::trace_file::open;

/// Number of recorded allocations of a process that failed in its last seconds. A program that has
/// handled an earlier failure does not end by it.
///
/// # Errors
/// The recording cannot be read.
pub(super) fn failed_count(path: &Path, pid: u32, ended_unix_ns: u64) -> anyhow::Result<u64> {
    let trace = open(path)?;
    let recorded_ns = trace.duration_ns();
    let at_ns = ended_unix_ns.checked_sub(trace.session().start_unix_ns);
    let at_ns = at_ns.map_or(recorded_ns, |at_ns| last_moment_ns(at_ns, recorded_ns));
    let end_ns = latest(trace.processes(), pid).and_then(|process| process.end_ns);
    // One that ended long before had the same number.
    let end_ns = end_ns.filter(|end_ns| at_ns.saturating_sub(*end_ns) <= LAG_NS_MAX).unwrap_or(at_ns);
    drop(trace);
    let from_ns = end_ns.saturating_sub(FAILED_SECONDS * 1_000_000_000);
    // A range ends before its last moment, at which the failure may be the last event.
    let to_ns = recorded_ns.max(from_ns).saturating_add(1);
    let range = [from_ns, to_ns].map(|time_ns| format!("{time_ns}ns"));
    let request = json!({"file": 0, "filter": {"pid": [pid.to_string()], "range": range}});
    let answer = answer_json(&Reader::of(path).files, "report", request.to_string().as_bytes())?;
    let answer: Value = serde_json::from_slice(&answer).context("the totals of a recording")?;
    Ok(answer["totals"]["failed_count"].as_u64().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use heapr_trace::{
        Action, Event, HeapId, Process, ProcessIndex, ProcessOrigin, StackIndex, Thread, ThreadIndex,
        TraceWriter,
    };

    use super::*;

    const S: u64 = 1_000_000_000;

    /// Recording of process 7, whose allocations failed at these seconds and which ended at 30 s.
    fn recording(folder: &Path, failed: &[u64]) -> std::path::PathBuf {
        let path = folder.join("failed.heapr");
        let mut writer = TraceWriter::create(&path, true).unwrap();
        let process = Process {
            pid: 7,
            parent_pid: 1,
            origin: ProcessOrigin::Exec,
            start_ns: 0,
            end_ns: Some(30 * S),
            executable: String::new(),
            command_line: Vec::new(),
            exit_status: None,
        };
        writer.add_process(process).unwrap();
        let process = ProcessIndex(0);
        writer
            .add_thread(Thread { process, tid: 7, name: String::new(), start_ns: 0, end_ns: None })
            .unwrap();
        for second in failed {
            let action = Action::Failed { size_bytes: 1 << 40, stack: StackIndex::EMPTY };
            let (thread, heap) = (ThreadIndex(0), HeapId::MALLOC);
            writer.event(&Event { time_ns: second * S, thread, heap, action }).unwrap();
        }
        writer.flush().unwrap();
        path
    }

    #[test]
    fn failures_of_the_last_seconds_count_and_earlier_ones_do_not() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(failed_count(&recording(folder.path(), &[1, 2, 29]), 7, 0).unwrap(), 1);
        assert_eq!(failed_count(&recording(folder.path(), &[1, 2]), 7, 0).unwrap(), 0);
    }
}
