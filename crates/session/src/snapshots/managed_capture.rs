//! Captures the heap of a managed language from a process that was not prepared, over the copy of
//! its memory that native graphs use.
//!
//! The process stands still until it is copied. All reading comes after, from the copied memory.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use heapr_glibc_heap::{Error as RundownError, HeapMemory, Plan, ReadStore};
use heapr_inject::{HeldProcess, HoldRequest, Look, ReadFrom, StoppedProcess, hold};
use heapr_known::glibc::ARENA_HEAP_BYTES;
use heapr_managed::{Contents, HeapRequest, Interpreter, ManagedHeap, NativeBlock};
use heapr_native::Memory;
use heapr_proc::{Mapping, mappings, not_as_it_is_in_forks};

use crate::Error;
use crate::snapshots::copied_memory::{CopiedMemory, Form};
use crate::snapshots::heap_look::Still;
use crate::snapshots::no_graph::reason_for_letting_go;

/// Largest size of a C heap that is walked while the process stands still or a copy of it lives.
/// The walk cannot be ended early.
const WALKED_IN_PAUSE_BYTES: u64 = 64 << 20;

/// Options for capturing a managed heap.
#[derive(Debug, Clone, Copy)]
pub struct ManagedRequest {
    /// Interpreter whose heap it is.
    pub interpreter: Interpreter,
    /// Longest time for which the process may stand still, or a copy of it may live.
    pub max_pause: Duration,
    /// Whether the process runs on as soon as it is copied; else it stands still until all is read.
    pub copies: bool,
    /// Contents that are written.
    pub contents: Contents,
}

/// A captured heap.
#[derive(Debug)]
pub struct ManagedTaken {
    /// The heap.
    pub heap: ManagedHeap,
    /// Longest time that a thread stood still.
    pub pause: Duration,
    /// Time for which a copy lived.
    pub copy_life: Option<Duration>,
    /// Reason why the process was not copied although that was requested.
    pub no_copy: Option<String>,
}

/// Returns the version of an interpreter that a process runs, without stopping it.
///
/// # Errors
/// The process cannot be read, or no heap can be read in it; the reason is part of the error.
pub fn managed_runtime(pid: u32, interpreter: Interpreter) -> Result<String, Error> {
    let process = StoppedProcess::about_to_stop(pid);
    let found = mappings::read(pid).unwrap_or_default();
    interpreter.check(&Still::alone(&process), &found).map_err(|reason| Error::NoManagedHeap { pid, reason })
}

/// Whether the memory of a process may be read: a byte of the first mapping of a file can be.
/// (Mappings may be shown where memory may not be read, under Yama's `ptrace_scope` 1.)
#[must_use]
pub fn may_be_read(pid: u32) -> bool {
    let process = StoppedProcess::about_to_stop(pid);
    let found = mappings::read(pid).unwrap_or_default();
    let first = found.iter().find(|mapping| mapping.is_readable && mapping.inode != 0);
    first.is_some_and(|mapping| Still::alone(&process).read(mapping.start_avma, &mut [0]) == 1)
}

/// Captures the heap of a process.
///
/// # Errors
/// The process cannot be stopped, or its heap cannot be read; it runs on unchanged.
pub fn managed_heap(pid: u32, request: &ManagedRequest) -> Result<ManagedTaken, Error> {
    // A process that may not be read is refused with the reason by `hold`.
    if may_be_read(pid) {
        managed_runtime(pid, request.interpreter)?;
    }
    let process = Arc::new(StoppedProcess::about_to_stop(pid));
    let allocator = Allocator::of(&process);
    let mut looking = Looking {
        pid,
        request: *request,
        since: Instant::now(),
        process,
        allocator,
        not_copied: not_as_it_is_in_forks(pid),
        mappings: Vec::new(),
        kept: None,
        found: None,
    };
    let options = HoldRequest {
        copies: request.copies,
        longest: Some(request.max_pause),
        without_agent: true,
        ..HoldRequest::default()
    };
    let report = hold(pid, options, &mut looking)?;
    let none = |reason: String| Error::NoGraph { pid, reason };
    if report.is_copy_lost {
        return Err(none("its copy was ended while that was read (memory is short)".to_owned()));
    }
    if let Some(late) = report.let_go {
        return Err(none(reason_for_letting_go(late.is_overdue, request.max_pause)));
    }
    match looking.found {
        Some(Ok(heap)) => Ok(ManagedTaken {
            heap,
            pause: report.pause,
            copy_life: report.copy_life,
            no_copy: report.no_copy.filter(|_| request.copies),
        }),
        Some(Err(reason)) => Err(Error::NoManagedHeap { pid, reason }),
        None => Err(none("it has ended meanwhile".to_owned())),
    }
}

struct Looking {
    pid: u32,
    request: ManagedRequest,
    since: Instant,
    process: Arc<StoppedProcess>,
    allocator: Allocator,
    /// Address ranges that a copy lacks, or has empty.
    not_copied: Vec<(u64, u64)>,
    mappings: Vec<Mapping>,
    kept: Option<CopiedMemory>,
    found: Option<heapr_managed::Result<ManagedHeap>>,
}

/// Facts of the C library's heap that are found before the process is stopped.
struct Allocator {
    plan: Result<Plan, RundownError>,
    room: ReadStore,
}

impl Allocator {
    fn of(process: &StoppedProcess) -> Self {
        let plan = Plan::make(process);
        let room = plan.as_ref().map(|plan| plan.room(process)).unwrap_or_default();
        Self { plan, room }
    }

    /// Returns the blocks by address, and what is not known of them.
    fn blocks(
        &mut self,
        memory: &(impl HeapMemory + Sync),
        held: &HeldProcess,
    ) -> (Vec<NativeBlock>, Vec<String>) {
        let thread_pointers: Vec<u64> = held.threads.iter().map(|thread| thread.thread_pointer).collect();
        let rundown = match &self.plan {
            Ok(plan) => heapr_glibc_heap::walk(plan, memory, &thread_pointers, &mut self.room)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        // What was read of the heap is in the blocks; its room would lie beside the graph.
        self.room = ReadStore::default();
        let rundown = match rundown {
            Ok(rundown) => rundown,
            Err(reason) => return (Vec::new(), vec![format!("native blocks are not in it: {reason}")]),
        };
        let mut notes: Vec<String> = rundown
            .findings()
            .iter()
            .map(|finding| format!("the C heap is not in order: {finding}"))
            .collect();
        if !held.is_quiet {
            notes.push(
                "a thread was at allocating: native blocks that it had just got are not in it".to_owned(),
            );
        }
        (native_blocks(rundown.blocks()), notes)
    }
}

/// Largest possible size of the C library's heap: memory from `brk`, and all mappings in which a
/// heap of an arena may begin.
fn c_heap_bytes(mappings: &[Mapping]) -> u64 {
    let may_be_heap = |mapping: &&Mapping| {
        let is_own = mapping.is_writable && !mapping.is_shared && mapping.inode == 0;
        let first_heap_avma = mapping.start_avma.checked_next_multiple_of(ARENA_HEAP_BYTES);
        is_own && (mapping.name == "[heap]" || first_heap_avma.is_some_and(|avma| avma < mapping.end_avma))
    };
    mappings.iter().filter(may_be_heap).map(Mapping::bytes).fold(0, u64::saturating_add)
}

/// Blocks by address, each once.
pub(crate) fn native_blocks(found: impl Iterator<Item = heapr_glibc_heap::LiveBlock>) -> Vec<NativeBlock> {
    let mut blocks: Vec<NativeBlock> = found
        .map(|block| NativeBlock { address_avma: block.address_avma, usable_bytes: block.usable_bytes })
        .collect();
    blocks.sort_unstable_by_key(|block| block.address_avma);
    blocks.dedup_by_key(|block| block.address_avma);
    blocks
}

impl Looking {
    /// Returns the blocks, unless finding them takes too much of the pause.
    fn blocks_in_pause(
        &mut self,
        memory: &(impl HeapMemory + Sync),
        held: &HeldProcess,
        may_last: &dyn Fn() -> bool,
    ) -> (Vec<NativeBlock>, Vec<String>) {
        let is_small = c_heap_bytes(&self.mappings) <= WALKED_IN_PAUSE_BYTES;
        // Without a plan the heap is not walked, and the reason is told.
        if self.allocator.plan.is_err() || is_small && may_last() {
            return self.allocator.blocks(memory, held);
        }
        let note = "native blocks are not in it: the heap is too large for the pause";
        (Vec::new(), vec![note.to_owned()])
    }

    fn read(
        &self,
        memory: &dyn Memory,
        (blocks, notes): (Vec<NativeBlock>, Vec<String>),
        goes_on: &dyn Fn() -> bool,
    ) -> heapr_managed::Result<ManagedHeap> {
        let mut heap = self.request.interpreter.read(&HeapRequest {
            memory,
            mappings: &self.mappings,
            blocks: &blocks,
            contents: self.request.contents,
            goes_on,
        })?;
        heap.notes.extend(notes);
        Ok(heap)
    }
}

impl Look for Looking {
    fn stands_still(&mut self) {
        self.since = Instant::now();
    }

    fn take_down(&mut self) -> bool {
        self.mappings = mappings::read(self.pid).unwrap_or_default();
        !self.mappings.is_empty()
    }

    fn keep(&mut self, copy: u32, goes_on: &dyn Fn() -> bool) -> bool {
        let memory = StoppedProcess::copy(copy);
        let of_copy = Still::of_copy(&memory, &self.process, &self.not_copied);
        let deadline = self.since + self.request.max_pause;
        let may_last = || Instant::now() < deadline && goes_on();
        self.kept = CopiedMemory::of(&of_copy, &self.mappings, Form::Packed, &may_last);
        self.kept.is_some()
    }

    fn look(&mut self, held: &HeldProcess, from: ReadFrom, goes_on: &dyn Fn() -> bool) {
        let deadline = self.since + self.request.max_pause;
        let is_over = Cell::new(false);
        let may_last = || {
            is_over.set(is_over.get() || Instant::now() >= deadline || !goes_on());
            !is_over.get()
        };
        self.found = Some(match from {
            ReadFrom::Kept => match self.kept.take() {
                Some(kept) => {
                    let blocks = self.allocator.blocks(&kept, held);
                    self.read(&kept, blocks, &|| true)
                }
                None => return,
            },
            ReadFrom::Copy(copy) => {
                let memory = StoppedProcess::copy(copy);
                let process = Arc::clone(&self.process);
                let not_copied = std::mem::take(&mut self.not_copied);
                let blocks = self.blocks_in_pause(&memory, held, &may_last);
                self.read(&Still::of_copy(&memory, &process, &not_copied), blocks, &may_last)
            }
            ReadFrom::Process => {
                self.mappings = mappings::read(self.pid).unwrap_or_default();
                let process = Arc::clone(&self.process);
                let blocks = self.blocks_in_pause(&*process, held, &may_last);
                self.read(&Still::alone(&process), blocks, &may_last)
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_of_the_c_heap_counts_for_its_size() {
        let mapping = |start_avma, bytes, name: &str| Mapping {
            start_avma,
            end_avma: start_avma + bytes,
            is_readable: true,
            is_writable: true,
            is_executable: false,
            is_shared: false,
            file_off: 0,
            inode: 0,
            name: name.to_owned(),
        };
        let arena_heap_avma = 5 * ARENA_HEAP_BYTES;
        let mut all = vec![
            mapping(0x1000, 3 << 20, "[heap]"),
            mapping(arena_heap_avma, 1 << 20, ""),
            mapping(arena_heap_avma + (2 << 20), 8 << 20, ""),
            mapping(3 * ARENA_HEAP_BYTES - 4096, 8192, ""),
        ];
        assert_eq!(c_heap_bytes(&all), (4 << 20) + 8192);
        all[0].is_shared = true;
        assert_eq!(c_heap_bytes(&all), (1 << 20) + 8192);
    }
}
