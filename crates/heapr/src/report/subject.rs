//! What a report says about the trace itself: taken from the file once, so that printing needs no file.

use heapr_query::RecordedSpan;
use heapr_trace::{HeapId, HeapName, Loss, ProcessIndex, ThreadIndex};

/// A process, as reports name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessName {
    pub(crate) pid: u32,
    /// File name of its executable.
    pub(crate) name: String,
}

/// A thread, as reports name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadName {
    pub(crate) tid: u32,
    pub(crate) name: String,
    pub(crate) process: ProcessIndex,
}

/// The trace of a report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subject {
    /// Path of the file.
    pub(crate) file: String,
    pub(crate) event_count: u64,
    pub(crate) duration_ns: u64,
    pub(crate) processes: Vec<ProcessName>,
    pub(crate) threads: Vec<ThreadName>,
    /// Names that programs gave to heaps of their own, in turn.
    pub(crate) heap_names: Vec<HeapName>,
    /// Over all processes.
    pub(crate) loss: Loss,
    /// What is to be known of the recordings of single processes, one line each.
    pub(crate) notices: Vec<String>,
    /// One line each.
    pub(crate) damage: Vec<String>,
    /// The recording did not end in order: there is no summary.
    pub(crate) is_cut_short: bool,
    /// Of which part of its time it has all events.
    pub(crate) span: RecordedSpan,
    /// What would give names to modules without.
    pub(crate) advice: Option<String>,
    /// The filters, in the words of the command line; empty: none.
    pub(crate) filters: String,
}

impl Subject {
    /// `python3 (1234)`.
    pub(crate) fn process(&self, process: ProcessIndex) -> String {
        match self.processes.get(process.0 as usize) {
            Some(known) => format!("{} ({})", known.name, known.pid),
            None => format!("process #{}", process.0),
        }
    }

    /// `malloc`, `mmap`, the name that the program gave, `heap 2`. A number that had several names in turn has all of them.
    pub(crate) fn heap(&self, process: ProcessIndex, heap: HeapId) -> String {
        let is_its = |name: &&HeapName| (name.process, name.heap) == (process, heap) && !name.name.is_empty();
        let mut names = self.heap_names.iter().filter(is_its);
        let Some(first) = names.next() else { return heap_name(heap) };
        match names.count() {
            0 => first.name.clone(),
            more => format!("{} and {more} more", first.name),
        }
    }

    /// `worker-1 (1240)`, with the process if there are several.
    pub(crate) fn thread(&self, thread: ThreadIndex) -> String {
        let Some(known) = self.threads.get(thread.0 as usize) else { return format!("thread #{}", thread.0) };
        let name = if known.name.is_empty() { "thread" } else { &known.name };
        if self.processes.len() > 1 {
            format!("{name} ({}) of {}", known.tid, self.process(known.process))
        } else {
            format!("{name} ({})", known.tid)
        }
    }

    /// Says on standard error what is wrong with the recording: for formats that have no place for it.
    pub(crate) fn tell_warnings(&self) {
        for warning in self.warnings() {
            tell!("heapr: {}: {warning}", self.file);
        }
    }

    /// What is wrong with the recording: one line each, to stand above all numbers.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = heapr_query::loss_warnings(&self.loss, super::quantity::count);
        warnings.extend(self.notices.iter().cloned());
        warnings.extend(self.span.warnings(super::quantity::duration));
        warnings.extend(self.damage.iter().map(|damage| format!("damaged file: {damage}")));
        if self.is_cut_short {
            warnings.push(
                "the recording did not end in order: the file is complete up to its last flush".to_owned(),
            );
        }
        warnings
    }
}

/// `malloc`, `mmap`, `heap 2`.
fn heap_name(heap: HeapId) -> String {
    match heap {
        HeapId::MALLOC => "malloc".to_owned(),
        HeapId::MMAP => "mmap".to_owned(),
        HeapId(number) => format!("heap {number}"),
    }
}
