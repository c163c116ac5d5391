//! Decides when a process's memory is read, and writes the account of it.

use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Instant;

use heapr_known::allocator_libraries;
use heapr_trace::{
    HeapId, MemoryAccount, Notice, PartKind, ProcessIndex, ProcessOrigin, ResidentSample, StackIndex,
};

use super::account::{ALLOCATOR_BYTES, Blocks, Owners, account};
use super::holders;
use crate::recorder::Recorder;
use crate::recorder::facts::look_times::LookedAt;
use crate::recorder::facts::memory_look::MemoryLook;
use crate::recorder::facts::process_facts;
use crate::recorder::inside::InsideModule;
use crate::recorder::output::sink::Sink;
use crate::recorder::state::process_state::ProcessState;

/// Least bytes outside of recorded blocks for a remark in the file.
const UNSEEN_BYTES: u64 = 3 << 20;

/// Live bytes of a process in blocks. Mappings are left out, as malloc's blocks lie in them.
fn live_bytes(sink: &Sink, index: ProcessIndex) -> u64 {
    let of_it = sink.summary.by_heap().filter(|(owner, heap, _)| *owner == index && *heap != HeapId::MMAP);
    of_it.fold(0_u64, |sum, (_, _, totals)| sum.saturating_add(totals.outstanding_bytes))
}

impl Recorder {
    /// Reads the memory of a process, if that is due.
    pub(in crate::recorder) fn look_if_due(
        &mut self,
        place: usize,
        counters: &heapr_proc::ResidentCounters,
        now_ns: u64,
    ) {
        let process = &mut self.processes[place];
        let amounts = LookedAt {
            own_bytes: counters.anonymous_bytes.saturating_add(counters.swapped_bytes),
            file_bytes: counters.file_bytes,
        };
        let (sink, index) = (&self.sink, process.index);
        if process.look_times.is_due(amounts, now_ns, || live_bytes(sink, index)) {
            let started = Instant::now();
            self.look_at_memory(place, now_ns);
            let took_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.processes[place].look_times.took(now_ns, took_ns);
        }
    }

    /// Evaluates the last readings: at the process's end, or when its recording ends before that.
    pub(in crate::recorder) fn take_last_looks(&mut self, place: usize, now_ns: u64) {
        let process = &self.processes[place];
        if process.looks.is_empty() && !process.has_ended && heapr_proc::is_alive(process.pid) {
            self.look_at_memory(place, now_ns);
        }
        for (time_ns, look) in std::mem::take(&mut self.processes[place].looks) {
            self.take_look(place, &look, time_ns);
        }
    }

    /// Evaluates the readings before which all events were merged.
    pub(in crate::recorder) fn take_looks(&mut self, place: usize) {
        let reached_ns = self.sink.last_ns;
        let due = self.processes[place].looks.extract_if(.., |(time_ns, _)| *time_ns < reached_ns);
        let due: Vec<(u64, MemoryLook)> = due.collect();
        for (time_ns, look) in &due {
            self.take_look(place, look, *time_ns);
        }
        if !due.is_empty() {
            self.processes[place].former_regions.clear();
        }
    }

    /// Reads the memory of a process.
    fn look_at_memory(&mut self, place: usize, now_ns: u64) {
        let process = &self.processes[place];
        // After an exec of a program that is not recorded, the memory is that program's.
        let executable = process_facts::executable(process.pid);
        let is_other = !executable.is_empty()
            && !process.executable.is_empty()
            && !process_facts::may_be_same_program(&executable, &process.executable);
        if is_other || !has_memory_of_its_own(process) {
            return;
        }
        let slot = self.pool.process_slot(process.slot);
        let is_its = |slot: &&heapr_wire::ProcessSlot| slot.generation.load(Relaxed) == process.generation;
        let list_avma = slot.filter(is_its).map_or(0, |slot| slot.own_mappings_avma.load(Relaxed));
        if let Some(look) = MemoryLook::of(process.pid, list_avma, process.go.is_some()) {
            let reading = look.reading(process.index, now_ns);
            let outcome = self.sink.writer.memory_reading(&reading);
            self.sink.keep(outcome);
            self.processes[place].looks.push((now_ns, look));
        }
    }

    /// Stores the account of a reading, if it has the most memory so far.
    fn take_look(&mut self, place: usize, look: &MemoryLook, now_ns: u64) {
        self.sink.take_pending();
        let process = &self.processes[place];
        let known_bytes = process.account.as_ref().map_or(0, |known| known.anonymous_bytes);
        if look.own_bytes() < known_bytes || !has_memory_of_its_own(process) {
            return;
        }
        let mut blocks = Blocks::default();
        for (_, heap, totals) in self.sink.summary.by_heap().filter(|(index, ..)| *index == process.index) {
            if heap != HeapId::MMAP && heap != HeapId::RUNTIME {
                blocks.bytes = blocks.bytes.saturating_add(totals.peak_bytes);
                blocks.count = blocks.count.saturating_add(totals.peak_count);
            }
        }
        let has_allocators = !look.malloc_libraries.is_empty()
            || process.inside.iter().any(|module| !module.allocators.is_empty());
        // The allocator's unnamed functions may be those that are called.
        let is_hidden = |module: &InsideModule| module.is_stripped && !module.named_allocators.is_empty();
        let may_be_hidden = process.inside.iter().any(is_hidden);
        let spare_bytes = has_allocators.then_some(if may_be_hidden { 0 } else { ALLOCATOR_BYTES });
        let owners = ProcessOwners { process, sink: &self.sink };
        let regions = [&process.regions, &process.former_regions];
        let found = account(look, blocks, regions, spare_bytes, &owners);
        let account = MemoryAccount { time_ns: now_ns, process: process.index, ..found };
        self.processes[place].account = Some(account);
    }

    /// Writes the resident sizes that the agent noted at the process's exit.
    pub(in crate::recorder) fn note_last_resident_set(&mut self, place: usize, now_ns: u64) {
        let process = &self.processes[place];
        let Some(slot) = self.pool.process_slot(process.slot) else { return };
        if slot.generation.load(Relaxed) != process.generation || slot.exits_noted.load(Acquire) == 0 {
            return;
        }
        let [anonymous_bytes, file_bytes, shared_memory_bytes, most_rss_bytes] =
            slot.resident_at_exit.each_ref().map(|place| place.load(Relaxed));
        let sample = ResidentSample {
            time_ns: now_ns,
            process: process.index,
            anonymous_bytes,
            file_bytes,
            shared_memory_bytes,
            most_rss_bytes,
            ..ResidentSample::default()
        };
        let outcome = self.sink.writer.resident_sample(sample);
        self.sink.keep(outcome);
    }

    /// Writes the account of a process that ends or is let go. Adds a remark on the holders of
    /// memory outside of recorded blocks, if that is more than a tenth.
    pub(in crate::recorder) fn note_memory(&mut self, place: usize, now_ns: u64) {
        if !has_memory_of_its_own(&self.processes[place]) {
            return;
        }
        let Some(account) = self.processes[place].account.take() else { return };
        let outcome = self.sink.writer.memory_account(&account);
        self.sink.keep(outcome);
        let unseen_bytes = account.unseen_bytes();
        if unseen_bytes < UNSEEN_BYTES.max(account.anonymous_bytes / 10) {
            return;
        }
        let process = &self.processes[place];
        let mut holders: Vec<String> = Vec::new();
        let mut named: Vec<&PartKind> = Vec::new();
        let mut named_bytes = 0_u64;
        for part in account.parts.iter().filter(|part| part.is_unseen) {
            named_bytes = named_bytes.saturating_add(part.bytes);
            if part.bytes >= unseen_bytes / 10 {
                holders.push(format!("{} {}", mebibytes(part.bytes), part.kind));
                named.push(&part.kind);
            }
        }
        let rest_bytes = unseen_bytes.saturating_sub(named_bytes);
        if rest_bytes > unseen_bytes / 10 {
            let how = if process.was_attached { "before it was attached to, or " } else { "" };
            holders.push(format!("{} mapped {how}without the C library", mebibytes(rest_bytes)));
        }
        let shows = holders::shown_by(&process.executable, &process.inside, &named);
        let text = format!(
            "{} of its {} anonymous memory are in no recorded block: {}{shows}",
            mebibytes(unseen_bytes),
            mebibytes(account.anonymous_bytes),
            holders.join(", ")
        );
        let notice = Notice { process: process.index, time_ns: now_ns, text };
        let outcome = self.sink.writer.notice(&notice);
        self.sink.keep(outcome);
    }
}

/// False for a forked child, which has its parent's memory, and for a process that execed before it
/// was read.
fn has_memory_of_its_own(process: &ProcessState) -> bool {
    let is_fork = |entry: &heapr_trace::Process| matches!(entry.origin, ProcessOrigin::Fork { .. });
    !process.has_gone_on && !process.is_superseded && !process.entry.as_ref().is_none_or(is_fork)
}

struct ProcessOwners<'a> {
    process: &'a ProcessState,
    sink: &'a Sink,
}

impl Owners for ProcessOwners<'_> {
    fn of_stack(&self, stack: StackIndex) -> Option<PartKind> {
        let addresses = self.process.return_addresses(stack);
        let path = addresses.into_iter().find_map(|address_avma| {
            let (_, &(end_avma, number)) = self.process.mappings.range(..=address_avma).next_back()?;
            let path = self.sink.writer.module_path(number).filter(|_| address_avma < end_avma)?;
            (!is_beside(path)).then_some(path)
        });
        let path = path.unwrap_or(&self.process.executable);
        let is_its = |module: &InsideModule| module.path == Path::new(path) && !module.allocators.is_empty();
        let file = holders::file_name(Path::new(path));
        if self.process.inside.iter().any(is_its) || allocator_libraries::is_library(&file) {
            return None;
        }
        let owners = match holders::runtime(path) {
            Some(row) => vec![row.heap.to_owned()],
            None => {
                let module = self.process.inside.iter().find(|module| module.path == Path::new(path));
                module.map_or_else(Vec::new, |module| module.named_allocators.clone())
            }
        };
        Some(PartKind::Mapped { owners, by: file })
    }

    fn shows_go(&self) -> bool {
        self.process.go.as_ref().is_some_and(|go| go.is_read && go.mean_bytes > 0)
    }

    fn of_rest(&self) -> Option<PartKind> {
        if self.process.go.is_some() {
            return Some(PartKind::GoRuntime);
        }
        let of_files = holders::of_files(&self.process.executable, &self.process.inside);
        of_files.or_else(|| {
            // Memory that the allocators had mapped before the attach is in no recorded block.
            let owners = holders::allocators_of(&self.process.inside);
            (self.process.was_attached && !owners.is_empty()).then_some(PartKind::BeforeAttach { owners })
        })
    }
}

/// Whether a module only forwards the call: the C library, the loader, the agent.
fn is_beside(path: &str) -> bool {
    let file = holders::file_name(std::path::Path::new(path));
    ["libc.so", "libc-2", "ld-linux", "ld-2", "libpthread", "heapr-agent"]
        .iter()
        .any(|start| file.starts_with(start))
}

/// Amount of memory as text for remarks.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
