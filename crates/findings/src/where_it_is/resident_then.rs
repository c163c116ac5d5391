//! Division of resident memory that is in no live block, by the readings nearest to a moment.

use std::collections::HashMap;

use heapr_query::file_name;
use heapr_table::quantity::duration;
use heapr_trace::{
    BlockEstimate, MemoryAccount, MemoryReading, PartKind, ProcessIndex, ResidentSample, Trace,
};

use super::piece::{Piece, PieceKind};
use crate::kept_memory::knows_all_blocks;

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
struct Sums {
    all: Vec<(PieceKind, String, u64, String)>,
    /// Place of each kind and label.
    places: HashMap<(PieceKind, String), usize>,
}

/// Readings of the memory of each process.
struct Known<'t> {
    /// Samples nearest to the moment.
    samples: HashMap<ProcessIndex, &'t ResidentSample>,
    readings: HashMap<ProcessIndex, Vec<&'t MemoryReading>>,
    accounts: HashMap<ProcessIndex, Vec<&'t MemoryAccount>>,
}

impl<'t> Known<'t> {
    fn of(trace: &'t Trace, time_ns: u64) -> Self {
        let far = |at_ns: u64| at_ns.abs_diff(time_ns);
        let mut samples: HashMap<ProcessIndex, &ResidentSample> = HashMap::new();
        for sample in trace.resident_samples() {
            let nearest = samples.entry(sample.process).or_insert(sample);
            if far(sample.time_ns) < far(nearest.time_ns) {
                *nearest = sample;
            }
        }
        let mut readings: HashMap<ProcessIndex, Vec<&MemoryReading>> = HashMap::new();
        for reading in trace.memory_readings() {
            readings.entry(reading.process).or_default().push(reading);
        }
        let mut accounts: HashMap<ProcessIndex, Vec<&MemoryAccount>> = HashMap::new();
        for account in trace.memory_accounts() {
            accounts.entry(account.process).or_default().push(account);
        }
        Self { samples, readings, accounts }
    }
}

impl Sums {
    fn add(&mut self, kind: PieceKind, label: &str, bytes: u64, note: &str) {
        if bytes == 0 {
            return;
        }
        let place = *self.places.entry((kind, label.to_owned())).or_insert(self.all.len());
        match self.all.get_mut(place) {
            Some((_, _, sum, _)) => *sum = sum.saturating_add(bytes),
            None => self.all.push((kind, label.to_owned(), bytes, note.to_owned())),
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
    /// `live`: live blocks by process.
    pub(super) fn of(
        trace: &Trace,
        is_chosen: &dyn Fn(ProcessIndex) -> bool,
        time_ns: u64,
        live: &HashMap<ProcessIndex, BlockEstimate>,
    ) -> Self {
        let mut found = Self::default();
        let mut sums = Sums::default();
        let known_memory = Known::of(trace, time_ns);
        // Number of processes without a reading, and their live bytes.
        let mut unread = (0_u64, 0_u64);
        let processes = (0_u32..).zip(trace.processes()).map(|(number, known)| (ProcessIndex(number), known));
        for (process, known) in processes.filter(|(process, _)| is_chosen(*process)) {
            let blocks = live.get(&process).copied().unwrap_or_default();
            let live = blocks.bytes.value;
            let is_alive = known.start_ns <= time_ns && known.end_ns.is_none_or(|end_ns| end_ns >= time_ns);
            if !is_alive && live == 0 {
                continue;
            }
            let Some(&sample) = known_memory.samples.get(&process) else {
                found.beyond_bytes = found.beyond_bytes.saturating_add(live);
                unread = (unread.0 + 1, unread.1.saturating_add(live));
                continue;
            };
            found.rss_bytes = Some(found.rss_bytes.unwrap_or(0).saturating_add(sample.rss_bytes()));
            let far = |at_ns: u64| at_ns.abs_diff(time_ns);
            if found.rss_time_ns.is_none_or(|at_ns| far(at_ns) < far(sample.time_ns)) {
                found.rss_time_ns = Some(sample.time_ns);
            }
            found.beyond_bytes =
                found.beyond_bytes.saturating_add(live.saturating_sub(sample.anonymous_bytes));
            divide((trace, &known_memory), sample, blocks, &mut sums);
        }
        found.say(unread);
        let pieces = sums
            .all
            .into_iter()
            .map(|(kind, label, bytes, note)| Piece::resident(kind, &label, bytes).noting(note));
        found.pieces = pieces.collect();
        found
    }

    /// `unread`: number of the processes without a reading, and their live bytes.
    fn say(&mut self, (unread, unread_bytes): (u64, u64)) {
        if self.rss_bytes.is_none() && unread == 0 {
            self.not_told
                .push("how much is resident: no process of the recording ran at this moment".to_owned());
        } else if self.rss_bytes.is_none() {
            self.not_told.push("how much is resident: the file has no reading of it".to_owned());
        } else if unread > 0 {
            self.not_told.push(format!("resident memory of {unread} processes without a reading"));
        }
        if let Some(at_ns) = self.rss_time_ns.filter(|_| self.beyond_bytes > unread_bytes) {
            self.not_told.push(format!(
                "how much of the blocks was resident: they have more than was resident without a file after {}; blocks \
                 that were never written, or that are swapped out, have no pages",
                duration(at_ns)
            ));
        }
    }
}

/// Divides a process's resident memory that is in no live block.
fn divide(
    (trace, known): (&Trace, &Known<'_>),
    sample: &ResidentSample,
    blocks: BlockEstimate,
    sums: &mut Sums,
) {
    let live = blocks.bytes.value.min(sample.anonymous_bytes);
    let accounts = || known.accounts.get(&sample.process).into_iter().flatten().copied();
    let agent = accounts().map(|account| account.agent_bytes).max().unwrap_or(0);
    let agent = agent.min(sample.anonymous_bytes - live);
    let mut left = sample.anonymous_bytes - live - agent;
    let programs = sample.anonymous_bytes - agent;
    let is_close = |bytes: u64| bytes.abs_diff(programs) <= programs / CLOSE_PART;
    let nearest = |reading: &&MemoryReading| reading.time_ns.abs_diff(sample.time_ns);
    let readings = known.readings.get(&sample.process).into_iter().flatten().copied();
    let reading = readings.min_by_key(nearest);
    if let Some(reading) = reading {
        let note = format!("as read after {}", duration(reading.time_ns));
        sums.take(&mut left, (PieceKind::ThreadStacks, "thread stacks"), reading.stack_bytes, &note);
        sums.take(&mut left, (PieceKind::WrittenData, "written data, bss"), reading.data_bytes, &note);
    }
    if let Some(reading) = reading.filter(|reading| is_close(reading.anonymous_bytes)) {
        let most = blocks.bytes.value.saturating_add(blocks.bytes_plus_minus());
        let kept = reading.heap_bytes.saturating_sub(most);
        let read = format!("heap as read after {}", duration(reading.time_ns));
        let (label, note) = match knows_all_blocks(trace, sample.process) {
            true => ((PieceKind::Kept, "freed and kept by malloc, headers"), format!("at least; {read}")),
            // Blocks from before an attach, or that were lost, are in it.
            false => ((PieceKind::Unknown, "malloc's heap, in no recorded block"), read),
        };
        sums.take(&mut left, label, kept, &note);
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
