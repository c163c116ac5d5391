//! The filters that are decided at a block's birth and that determine the peak: process, heap,
//! thread, size.

use heapr_trace::{Block, HeapId, Process, ProcessIndex, Thread, ThreadIndex};

use crate::error::{Error, Result};
use crate::filter::{Filter, Span, ThreadChoice};
use crate::glob::Glob;

/// The pids, heaps and threads of a filter, resolved in a trace, and its sizes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Whether each process is chosen; `None` for all.
    processes: Option<Vec<bool>>,
    heaps: Option<Vec<HeapId>>,
    /// Whether each thread is chosen; `None` for all.
    threads: Option<Vec<bool>>,
    /// Chosen sizes; `None` for all.
    pub size: Option<Span>,
}

impl Choice {
    /// # Errors
    /// The filter names a process or thread that the trace does not have.
    pub fn new(filter: &Filter, processes: &[Process], threads: &[Thread]) -> Result<Self> {
        for &pid in &filter.pids {
            if !processes.iter().any(|process| process.pid == pid) {
                return Err(Error::NoSuchProcess { pid, present: present_pids(processes) });
            }
        }
        let chosen: Vec<bool> = processes.iter().map(|process| filter.pids.contains(&process.pid)).collect();
        let is_all = filter.pids.is_empty() || chosen.iter().all(|&is_chosen| is_chosen);
        Ok(Self {
            processes: (!is_all).then_some(chosen),
            heaps: (!filter.heaps.is_empty()).then(|| filter.heaps.clone()),
            threads: chosen_threads(&filter.threads, threads)?,
            size: filter.size,
        })
    }

    /// Whether every block is chosen.
    pub fn is_everything(&self) -> bool {
        self.is_every_origin() && self.size.is_none()
    }

    /// Whether blocks of all processes, heaps and threads are chosen, regardless of size.
    pub fn is_every_origin(&self) -> bool {
        self.processes.is_none() && self.heaps.is_none() && self.threads.is_none()
    }

    fn has_process(&self, process: ProcessIndex) -> bool {
        self.processes.as_ref().is_none_or(|chosen| chosen.get(process.0 as usize).copied().unwrap_or(false))
    }

    fn has_thread(&self, thread: ThreadIndex) -> bool {
        self.threads.as_ref().is_none_or(|chosen| chosen.get(thread.0 as usize).copied().unwrap_or(false))
    }

    /// Whether calls of this thread on this heap are chosen.
    pub fn has_origin(&self, process: ProcessIndex, heap: HeapId, thread: ThreadIndex) -> bool {
        self.has_process(process)
            && self.heaps.as_ref().is_none_or(|heaps| heaps.contains(&heap))
            && self.has_thread(thread)
    }

    /// Whether a size is chosen.
    pub fn has_size(&self, size_bytes: u64) -> bool {
        self.size.is_none_or(|size| size.contains(size_bytes))
    }

    /// Whether a block is chosen.
    pub fn has(&self, block: &Block) -> bool {
        self.has_size(block.size_bytes) && self.has_origin(block.process, block.heap, block.thread)
    }
}

fn chosen_threads(choices: &[ThreadChoice], threads: &[Thread]) -> Result<Option<Vec<bool>>> {
    if choices.is_empty() {
        return Ok(None);
    }
    let mut chosen = vec![false; threads.len()];
    for choice in choices {
        let name = match choice {
            ThreadChoice::Tid(_) => None,
            ThreadChoice::Name(name) => Some(Glob::new(name)),
        };
        let mut is_found = false;
        for (thread, is_chosen) in threads.iter().zip(&mut chosen) {
            let matches = match (choice, &name) {
                (ThreadChoice::Tid(tid), _) => thread.tid == *tid,
                (_, Some(name)) => name.matches_lower(&thread.name.to_ascii_lowercase()),
                (_, None) => false,
            };
            *is_chosen |= matches;
            is_found |= matches;
        }
        if !is_found {
            let thread = match choice {
                ThreadChoice::Tid(tid) => tid.to_string(),
                ThreadChoice::Name(name) => name.clone(),
            };
            return Err(Error::NoSuchThread { thread });
        }
    }
    Ok(Some(chosen))
}

/// The pids for an error message: at most eight.
fn present_pids(processes: &[Process]) -> String {
    let mut pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
    pids.dedup();
    let more = pids.len().saturating_sub(8);
    let shown: Vec<String> = pids.iter().take(8).map(u32::to_string).collect();
    match (shown.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => shown.join(", "),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}
