//! Facts about the trace of a report. They are read from the file once, so that printing needs no
//! file.

use std::path::Path;

use heapr_query::{Group, GroupBy, OwnCode, RecordedSpan, Report};
use heapr_table::quantity;
use heapr_trace::{
    Damage, HeapId, HeapName, ProcessIndex, Sampling, SamplingPeriod, Thread, ThreadIndex, Trace,
};

use crate::frame_text::{frame_line, frame_name, image_name};
use crate::old_interpreters;
use crate::own_memory::own_memory;
use crate::process_name::ProcessName;

/// Thread as reports name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadName {
    /// Thread id.
    pub tid: u32,
    /// Name that the program gave to it.
    pub name: String,
    /// Process of the thread.
    pub process: ProcessIndex,
}

/// Trace of a report.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// Path of the file.
    pub file: String,
    /// Number of all events.
    pub event_count: u64,
    /// Length of the recording.
    pub duration_ns: u64,
    /// Processes by index.
    pub processes: Vec<ProcessName>,
    /// Threads by index.
    pub threads: Vec<ThreadName>,
    /// Names that programs gave to heaps of their own, in turn.
    pub heap_names: Vec<HeapName>,
    /// Events lost, in all processes.
    pub lost_events: u64,
    /// Lines about the explained share of the largest process's anonymous memory.
    pub own_memory: Vec<String>,
    /// Lines about faults of the recording, to be shown above all numbers.
    pub warnings: Vec<String>,
    /// Text about how allocations were sampled; `None`: all are counted.
    pub sampled: Option<String>,
    /// Sampling periods, for programs.
    pub sampling: Sampling,
    /// Advice on how to get names for modules without symbols.
    pub advice: Option<String>,
    /// Filters in the command line's syntax; empty: no filter.
    pub filters: String,
    /// Rule that determines the own frame of a stack.
    pub own: OwnCode,
}

impl Subject {
    /// Reads the facts from the file. `damage` is damage found while reading events. `filters` is
    /// in the command line's syntax.
    #[must_use]
    pub fn new(file: &Path, trace: &Trace, damage: &[Damage], filters: String) -> Self {
        let thread = |thread: &Thread| ThreadName {
            tid: thread.tid,
            name: thread.name.clone(),
            process: thread.process,
        };
        Self {
            file: file.display().to_string(),
            event_count: trace.event_count(),
            duration_ns: trace.duration_ns(),
            processes: trace.processes().iter().map(ProcessName::from).collect(),
            own_memory: own_memory(trace),
            threads: trace.threads().iter().map(thread).collect(),
            heap_names: trace.heap_names().to_vec(),
            lost_events: trace.whole_loss().missing_events(),
            warnings: warnings(trace, damage, false),
            sampled: sampled_text(trace.sampling()),
            sampling: trace.sampling().clone(),
            advice: None,
            filters,
            own: OwnCode::of_trace(trace),
        }
    }

    /// Name of a process: `python3 (1234)`.
    #[must_use]
    pub fn process(&self, process: ProcessIndex) -> String {
        match self.processes.get(process.0 as usize) {
            Some(known) => known.to_string(),
            None => format!("process #{}", process.0),
        }
    }

    /// Name of a heap: `malloc`, `mmap`, the name that the program gave, or `heap 2`. A heap that
    /// had several names in turn is shown with all of them.
    #[must_use]
    pub fn heap(&self, process: ProcessIndex, heap: HeapId) -> String {
        heapr_query::json::heap_name(&self.heap_names, process, heap)
    }

    /// Name of a thread: `worker-1 (1240)`, with the process if there are several.
    #[must_use]
    pub fn thread(&self, thread: ThreadIndex) -> String {
        let Some(known) = self.threads.get(thread.0 as usize) else { return format!("thread #{}", thread.0) };
        let name = if known.name.is_empty() { "thread" } else { &known.name };
        if self.processes.len() > 1 {
            format!("{name} ({}) of {}", known.tid, self.process(known.process))
        } else {
            format!("{name} ({})", known.tid)
        }
    }
}

/// Text about sampling: `sampled, every 512 KiB of malloc: estimates, ± is 95 %`.
#[must_use]
pub fn sampled_text(sampling: &Sampling) -> Option<String> {
    if sampling.is_exact() {
        return None;
    }
    let special = [SamplingPeriod::ALL_BYTES, SamplingPeriod::NOTHING_BYTES];
    let means = sampling.means();
    let every: Vec<u64> = means.iter().copied().filter(|mean| !special.contains(mean)).collect();
    let every = match every[..] {
        [] => return Some("nothing of malloc was recorded".to_owned()),
        [one] if sampling.is_by_runtimes() => {
            let every = quantity::bytes(one);
            return Some(format!("Go's heap is sampled by its runtime, every {every}: estimates, ± is 95 %"));
        }
        [one] => quantity::bytes(one),
        [first, .., last] => format!("{} to {}", quantity::bytes(first), quantity::bytes(last)),
    };
    let for_a_while = if means.contains(&SamplingPeriod::ALL_BYTES) { ", for a while all" } else { "" };
    Some(format!("sampled, every {every}{for_a_while}: estimates, ± is 95 %"))
}

/// Lines about faults of a recording. `damage` is further damage, found while reading events. A
/// running recording is not reported as incomplete.
#[must_use]
pub fn warnings(trace: &Trace, damage: &[Damage], is_running: bool) -> Vec<String> {
    let mut warnings = heapr_query::loss_warnings(&trace.whole_loss(), quantity::count);
    warnings.extend(heapr_query::notice_lines(trace, quantity::duration));
    warnings.extend(old_interpreters::lines(trace));
    warnings.extend(RecordedSpan::of(trace).warnings(quantity::duration));
    let known = trace.damage();
    let others = damage.iter().filter(|damage| !known.contains(damage));
    for Damage { bytes, offset, what } in known.iter().chain(others) {
        warnings
            .push(format!("damaged file: {} at offset {offset}: {what}", quantity::plural(*bytes, "byte")));
    }
    if !trace.is_complete() && !is_running {
        warnings.push(
            "the recording goes on, or did not end in order: the file is complete up to its last flush"
                .to_owned(),
        );
    }
    warnings
}

/// Name of a group of frames, images or threads.
#[must_use]
pub fn group_name(subject: &Subject, report: &Report<'_>, group: &Group, by: GroupBy) -> String {
    let frames = report.frames(group);
    match by {
        GroupBy::Images => image_name(&frames),
        GroupBy::Threads => group.thread().map_or_else(String::new, |thread| subject.thread(thread)),
        GroupBy::Stacks | GroupBy::Frames => {
            frames.first().map_or_else(|| "(no stack was taken)".to_owned(), frame_name)
        }
        GroupBy::Lines => frames
            .first()
            .map_or_else(|| "(no stack was taken)".to_owned(), |frame| frame_line(frame, usize::MAX)),
    }
}
