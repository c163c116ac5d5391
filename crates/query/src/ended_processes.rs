//! Ends of a trace's processes, and whether its summary counts only living processes. The blocks
//! that a process has not freed end with it.
//!
//! A recorder learns of an end some time after it. It writes the earliest possible time of the end:
//! the time at which it last saw the process alive, or the process's last event. Older and
//! unfinished files state when the recorder learned of the end. For them the earliest time is
//! computed here:
//!
//! ```text
//! process      ─e──e───e─e┤
//! seen alive       │ *        │             last sample that shows it alive
//! the file says               │ end         between the two its last event is searched
//! ```

use heapr_ledger::ProcessEnds;
use heapr_trace::{ProcessIndex, Summary, Trace};

/// The ends that count: those with an event after them.
///
/// Events that cannot be read are skipped; the replay that follows reports them.
#[must_use]
pub fn process_ends(trace: &Trace) -> ProcessEnds {
    let last_ns = trace.event_chunks().map(|chunk| chunk.last_ns).max().unwrap_or(0);
    let processes = trace.processes().iter().enumerate();
    let mut ends: Vec<(u64, ProcessIndex)> = processes
        .filter_map(|(index, process)| Some((process.end_ns?, ProcessIndex(index as u32))))
        .collect();
    let is_exact = trace.summary_totals().ok().flatten().is_some_and(|summary| summary.counts_living);
    if !is_exact && trace.processes().len() > 1 {
        narrow(trace, &mut ends);
    }
    ends.retain(|&(end_ns, _)| end_ns < last_ns);
    ProcessEnds::new(ends)
}

/// The summary of a file, if it counts only living processes; `None` if a replay is needed.
pub fn written_summary(trace: &Trace) -> heapr_trace::Result<Option<Summary>> {
    Ok(trace.summary_totals()?.filter(|summary| is_of_living(trace, summary)))
}

/// Whether a summary leaves out the blocks of ended processes. Either it says so, or no event comes
/// after an end.
fn is_of_living(trace: &Trace, summary: &Summary) -> bool {
    summary.counts_living || trace.event_count() == 0 || process_ends(trace).next_ns() == u64::MAX
}

/// Replaces the times at which the recorder learned of ends by the earliest possible ones.
fn narrow(trace: &Trace, ends: &mut [(u64, ProcessIndex)]) {
    let mut alive = vec![None; trace.processes().len()];
    for sample in trace.rss_samples() {
        if let Some(known) = alive.get_mut(sample.process.0 as usize) {
            *known = Some(sample.time_ns.max(known.unwrap_or(0)));
        }
    }
    let mut windows: Vec<(u64, u64)> = Vec::new();
    let mut last: Vec<Option<u64>> = vec![None; trace.processes().len()];
    for &(end_ns, process) in ends.iter() {
        let index = process.0 as usize;
        let start_ns = trace.processes()[index].start_ns;
        let alive_ns = alive[index].unwrap_or(start_ns).clamp(start_ns.min(end_ns), end_ns);
        last[index] = Some(alive_ns);
        windows.push((alive_ns, end_ns));
    }
    windows.sort_unstable();
    windows.dedup_by(|later, before| {
        let meets = later.0 <= before.1;
        before.1 = if meets { before.1.max(later.1) } else { before.1 };
        meets
    });
    for (from_ns, to_ns) in windows {
        let mut events = trace.events(from_ns, to_ns.saturating_add(1));
        while let Ok(Some(batch)) = events.next_batch() {
            for event in batch {
                if let Some(Some(known)) = last.get_mut(trace.process_of(event.thread).0 as usize) {
                    *known = event.time_ns.max(*known);
                }
            }
        }
    }
    for (end_ns, process) in ends {
        *end_ns = last[process.0 as usize].unwrap_or(*end_ns).min(*end_ns);
    }
}
