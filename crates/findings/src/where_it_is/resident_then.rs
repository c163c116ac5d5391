//! Division of resident memory that is in no live block, by the readings nearest to a moment.

use std::collections::HashMap;

use heapr_query::file_name;
use heapr_table::quantity::duration;
use heapr_trace::{MemoryAccount, MemoryReading, PartKind, ProcessIndex, ResidentSample, Trace};

use super::piece::{Piece, PieceKind};

/// Largest difference of the memory without a file at a moment and at a reading: one part in this
/// many. A reading that differs more does not divide the moment's memory.
const CLOSE_PART: u64 = 8;
/// Smallest part of all resident memory that a file has for a piece of its own: one in this many.
const FILE_PART: u64 = 50;

/// Resident memory of all chosen processes about a moment.
#[derive(Debug, Default)]
pub(super) struct ResidentThen {
    /// Pieces of memory that is in no recorded block.
    pub(super) pieces: Vec<Piece>,
    /// Resident bytes; `None` without a reading.
    pub(super) rss_bytes: Option<u64>,
    /// Time of the reading that is farthest from the moment.
    pub(super) rss_time_ns: Option<u64>,
    /// Live bytes beyond the resident memory without a file.
    pub(super) beyond_bytes: u64,
    /// Facts that could not be determined.
    pub(super) not_told: Vec<String>,
}

/// Sums by kind and label, in the order of their first use.
#[derive(Default)]
struct Sums(Vec<(PieceKind, String, u64, String)>);

impl Sums {
    fn add(&mut self, kind: PieceKind, label: &str, bytes: u64, note: &str) {
        if bytes == 0 {
            return;
        }
        match self.0.iter_mut().find(|(own, name, ..)| *own == kind && name == label) {
            Some((_, _, sum, _)) => *sum = sum.saturating_add(bytes),
            None => self.0.push((kind, label.to_owned(), bytes, note.to_owned())),
        }
    }

    /// Adds at most what is left, and takes it off.
    fn take(&mut self, left: &mut u64, (kind, label): (PieceKind, &str), bytes: u64, note: &str) {
        let taken = bytes.min(*left);
        *left -= taken;
        self.add(kind, label, taken, note);
    }
}

impl ResidentThen {
    /// Divides the memory of the processes that have live blocks, or that lived at the time.
    /// `live`: bytes of live blocks by process.
    pub(super) fn of(
        trace: &Trace,
        is_chosen: &dyn Fn(ProcessIndex) -> bool,
        time_ns: u64,
        live: &HashMap<ProcessIndex, u64>,
    ) -> Self {
        let mut found = Self::default();
        let mut sums = Sums::default();
        let mut unread = 0_u64;
        let processes = (0_u32..).zip(trace.processes()).map(|(number, known)| (ProcessIndex(number), known));
        for (process, known) in processes.filter(|(process, _)| is_chosen(*process)) {
            let live = live.get(&process).copied().unwrap_or(0);
            let is_alive = known.start_ns <= time_ns && known.end_ns.is_none_or(|end_ns| end_ns >= time_ns);
            if !is_alive && live == 0 {
                continue;
            }
            let own = trace.resident_samples().iter().filter(|sample| sample.process == process);
            let Some(sample) = own.min_by_key(|sample| sample.time_ns.abs_diff(time_ns)) else {
                found.beyond_bytes = found.beyond_bytes.saturating_add(live);
                unread += 1;
                continue;
            };
            found.rss_bytes = Some(found.rss_bytes.unwrap_or(0).saturating_add(sample.rss_bytes()));
            let far = |at_ns: u64| at_ns.abs_diff(time_ns);
            if found.rss_time_ns.is_none_or(|at_ns| far(at_ns) < far(sample.time_ns)) {
                found.rss_time_ns = Some(sample.time_ns);
            }
            found.beyond_bytes =
                found.beyond_bytes.saturating_add(live.saturating_sub(sample.anonymous_bytes));
            divide(trace, sample, live, &mut sums);
        }
        found.say(unread);
        let pieces = sums
            .0
            .into_iter()
            .map(|(kind, label, bytes, note)| Piece::resident(kind, &label, bytes).noting(note));
        found.pieces = pieces.collect();
        found
    }

    fn say(&mut self, unread: u64) {
        if self.rss_bytes.is_none() {
            self.not_told.push("how much is resident: the file has no reading of it".to_owned());
        } else if unread > 0 {
            self.not_told.push(format!("resident memory of {unread} processes without a reading"));
        }
        if let Some(at_ns) = self.rss_time_ns.filter(|_| self.beyond_bytes > 0) {
            self.not_told.push(format!(
                "how much of the blocks was resident: they have more than was resident without a file after {}; blocks \
                 that were never written, or that are swapped out, have no pages",
                duration(at_ns)
            ));
        }
    }
}

/// Divides a process's resident memory that is in no live block.
fn divide(trace: &Trace, sample: &ResidentSample, live: u64, sums: &mut Sums) {
    let live = live.min(sample.anonymous_bytes);
    let accounts = || trace.memory_accounts().iter().filter(|account| account.process == sample.process);
    let agent = accounts().map(|account| account.agent_bytes).max().unwrap_or(0);
    let agent = agent.min(sample.anonymous_bytes - live);
    let mut left = sample.anonymous_bytes - live - agent;
    let programs = sample.anonymous_bytes - agent;
    let is_close = |bytes: u64| bytes.abs_diff(programs) <= programs / CLOSE_PART;
    let nearest = |reading: &&MemoryReading| reading.time_ns.abs_diff(sample.time_ns);
    let readings = trace.memory_readings().iter().filter(|reading| reading.process == sample.process);
    let reading = readings.min_by_key(nearest);
    if let Some(reading) = reading {
        let note = format!("as read after {}", duration(reading.time_ns));
        sums.take(&mut left, (PieceKind::ThreadStacks, "thread stacks"), reading.stack_bytes, &note);
        sums.take(&mut left, (PieceKind::WrittenData, "written data, bss"), reading.data_bytes, &note);
    }
    if let Some(reading) = reading.filter(|reading| is_close(reading.anonymous_bytes)) {
        let kept = reading.heap_bytes.saturating_sub(live);
        let note = format!("at least; heap as read after {}", duration(reading.time_ns));
        sums.take(&mut left, (PieceKind::Kept, "freed and kept by malloc, headers"), kept, &note);
    }
    if let Some(account) = accounts().find(|account| is_close(account.anonymous_bytes)) {
        runtimes(account, &mut left, sums);
    }
    sums.add(PieceKind::Unknown, "unknown", left, "without a file, in no live block");
    sums.add(PieceKind::Recorder, "heapr itself", agent, "");
    files(sample, reading, sums);
    let note = "heapr's buffers in the process are among it";
    sums.add(PieceKind::SharedMemory, "shared memory", sample.shared_memory_bytes, note);
}

/// Takes off heaps of runtimes and of unrecorded allocators.
fn runtimes(account: &MemoryAccount, left: &mut u64, sums: &mut Sums) {
    let note = format!("as read after {}", duration(account.time_ns));
    for part in account.parts.iter().filter(|part| part.is_unseen) {
        let label = match &part.kind {
            kind if !kind.owners().is_empty() => kind.owners().join(" and "),
            PartKind::GoHeap { .. } => "Go heap".to_owned(),
            PartKind::GoRuntime => "Go runtime".to_owned(),
            kind @ PartKind::Mapped { .. } => kind.to_string(),
            _ => continue,
        };
        sums.take(left, (PieceKind::Runtime, &label), part.bytes, &note);
    }
}

/// Pages of files: those of large files by name.
fn files(sample: &ResidentSample, reading: Option<&MemoryReading>, sums: &mut Sums) {
    let mut left = sample.file_bytes;
    let least = sample.rss_bytes() / FILE_PART;
    for file in reading.iter().flat_map(|reading| &reading.files).filter(|file| file.bytes >= least.max(1)) {
        let note = reading.map_or_else(String::new, |reading| {
            format!("{}, as read after {}", file.path, duration(reading.time_ns))
        });
        sums.take(&mut left, (PieceKind::Files, file_name(&file.path)), file.bytes, &note);
    }
    sums.add(PieceKind::Files, "programs, libraries and other files", left, "");
}
