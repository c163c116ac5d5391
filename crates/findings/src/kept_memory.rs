//! Division of the resident memory without a file, from readings of the mappings.

use heapr_table::quantity::{bytes, duration, plural};
use heapr_trace::{HeapId, MemoryReading, ProcessIndex, Trace};

use crate::recording::Recording;
use crate::work_time::WorkTime;

/// Possible error of the time of a resident sample, in nanoseconds.
const LOOK_NS: u64 = 100_000_000;
/// Bytes beside each live block, at most: its header, and what rounding and alignment add to it.
const BESIDE_BLOCK_BYTES: u64 = 32;
/// Path of the module that stands for the blocks of the time before an attach.
pub(crate) const EARLIER_BLOCKS: &str = "allocated before attach";

/// Division of the memory at a reading, with the part of the C library's heap that is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) memory: KeptMemory,
    /// Bytes of the C library's heap that were in no live block then; 0: not known.
    pub(crate) free_bytes: u64,
    /// True if the bytes are the least: the blocks' peak was taken off.
    is_least: bool,
}

impl Kept {
    /// Division at the last reading until a time, for memory that was in blocks before.
    pub(crate) fn freed(
        recording: &Recording<'_>,
        work: &WorkTime,
        (process, until_ns): (ProcessIndex, u64),
    ) -> Option<Self> {
        let memory = KeptMemory::until(recording.trace, process, until_ns.saturating_add(LOOK_NS))?;
        let live = live_then(recording, work, process, memory.time_ns);
        let free_bytes = live.map_or(0, |live| memory.free_bytes(live));
        Some(Self { memory, free_bytes, is_least: false })
    }

    /// Variant of [`Kept::freed`] for memory that was never in blocks: the most that ever was in
    /// blocks is taken off. `peak`: bytes of the blocks at most, as far as moments tell it.
    pub(crate) fn never_in_blocks(
        recording: &Recording<'_>,
        work: &WorkTime,
        (process, until_ns): (ProcessIndex, u64),
        peak: u64,
    ) -> Option<Self> {
        let memory = KeptMemory::until(recording.trace, process, until_ns.saturating_add(LOOK_NS))?;
        let (peak_bytes, peak_count) = peak_of_all(recording, process);
        let peak = peak.max(peak_bytes);
        let peak = peak.saturating_add(recording.half_of_bytes(peak));
        let moments = recording.summary.course.moments.iter();
        let most = moments.map(|moment| moment.live_count).max().unwrap_or(0).max(peak_count);
        let live = live_then(recording, work, process, memory.time_ns);
        let free_bytes =
            live.map_or(0, |(bytes, count)| memory.free_bytes((bytes.max(peak), count.max(most))));
        Some(Self { memory, free_bytes, is_least: true })
    }

    /// Sentences about the division.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts = vec![self.memory.text()];
        if self.free_bytes > 0 {
            texts.push(format!(
                "{} {} of the C library's heap were in no live block then",
                if self.is_least { "at least" } else { "about" },
                bytes(self.free_bytes)
            ));
        }
        texts
    }
}

/// Returns the most that was live in blocks about a time, and the end of the moments about it.
pub(crate) fn live_about(recording: &Recording<'_>, work: &WorkTime, at_ns: u64) -> Option<(u64, usize)> {
    // From the moment before to the moment after the sample: memory allocated in that step must not
    // count as freed.
    let times = &recording.times_ns;
    let first = times.partition_point(|&time_ns| time_ns.saturating_add(LOOK_NS) <= at_ns);
    let end = times.partition_point(|&time_ns| time_ns <= at_ns.saturating_add(LOOK_NS));
    let first = first.saturating_sub(1).saturating_sub(work.first);
    let end = (end + 1).checked_sub(work.first)?.min(work.live_bytes.len());
    let live = work.live_bytes.get(first..end)?.iter().copied().max()?;
    // No event follows the last moment for long: what is left then stays.
    let last_ns = times.last().copied().unwrap_or(0);
    let is_still = work.still.1 > 0 && at_ns > last_ns.saturating_add(LOOK_NS);
    Some((if is_still { work.still.0 } else { live }, end))
}

/// Bytes and number of a process's live blocks about a time; `None` if blocks of it may be unknown.
fn live_then(
    recording: &Recording<'_>,
    work: &WorkTime,
    process: ProcessIndex,
    at_ns: u64,
) -> Option<(u64, u64)> {
    if !knows_all_blocks(recording.trace, process) {
        return None;
    }
    let (live_bytes, _) = live_about(recording, work, at_ns)?;
    // The blocks of all processes are at least as many as those of one.
    let behind = recording.times_ns.partition_point(|&time_ns| time_ns <= at_ns);
    let about = recording.summary.course.moments.get(behind.saturating_sub(1)..)?.iter().take(3);
    let live_count = about.map(|moment| moment.live_count).max()?;
    Some((live_bytes.saturating_add(recording.half_of_bytes(live_bytes)), live_count))
}

/// True if each live block of a process is known. An attach knows the earlier ones if it read the
/// heap, and follows their ends only if it does not sample.
pub(crate) fn knows_all_blocks(trace: &Trace, process: ProcessIndex) -> bool {
    let has_earlier = || {
        let mut mappings = trace.mappings().iter().filter(|mapping| mapping.process == process);
        mappings.any(|mapping| {
            let module = trace.modules().get(mapping.module.0 as usize);
            module.is_some_and(|module| module.path == EARLIER_BLOCKS)
        })
    };
    let is_from_start = !trace.session().command_line.is_empty();
    trace.whole_loss().missing_events() == 0 && (is_from_start || !trace.is_sampled() && has_earlier())
}

/// Bytes and number of blocks at the peaks of a process's heaps, which need not be at one time.
fn peak_of_all(recording: &Recording<'_>, process: ProcessIndex) -> (u64, u64) {
    let of_it = recording
        .summary
        .by_heap
        .iter()
        .filter(|(owner, heap, _)| *owner == process && *heap != HeapId::MMAP);
    of_it.fold((0_u64, 0_u64), |(bytes, count), (_, _, totals)| {
        (bytes.saturating_add(totals.peak_bytes), count.saturating_add(totals.peak_count))
    })
}

/// Division of the resident memory without a file at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptMemory {
    pub(crate) time_ns: u64,
    /// Bytes in the C library's heap, and the number of its pieces.
    pub(crate) heap_bytes: u64,
    heap_pieces: u64,
    stack_bytes: u64,
    data_bytes: u64,
    /// Bytes in other mappings.
    other_bytes: u64,
}

impl KeptMemory {
    /// Last reading of a process until a time.
    pub(crate) fn until(trace: &Trace, process: ProcessIndex, until_ns: u64) -> Option<Self> {
        let readings = trace.memory_readings().iter();
        let of_it = readings.filter(|reading| reading.process == process && reading.time_ns <= until_ns);
        of_it.max_by_key(|reading| reading.time_ns).map(Self::of)
    }

    fn of(reading: &MemoryReading) -> Self {
        let &MemoryReading {
            time_ns, anonymous_bytes, heap_bytes, heap_pieces, stack_bytes, data_bytes, ..
        } = reading;
        let told = heap_bytes.saturating_add(stack_bytes).saturating_add(data_bytes);
        let other_bytes = anonymous_bytes.saturating_sub(told);
        Self { time_ns, heap_bytes, heap_pieces, stack_bytes, data_bytes, other_bytes }
    }

    /// Least bytes of the C library's heap that are in no live block. `live`: bytes and number of
    /// all live blocks of the process; some of them may lie elsewhere.
    pub(crate) fn free_bytes(&self, (live_bytes, live_count): (u64, u64)) -> u64 {
        let beside = live_count.saturating_mul(BESIDE_BLOCK_BYTES);
        self.heap_bytes.saturating_sub(live_bytes.saturating_add(beside))
    }

    /// Sentence with the parts.
    pub(crate) fn text(&self) -> String {
        let heap = format!(
            "{} in the C library's heap ({})",
            bytes(self.heap_bytes),
            plural(self.heap_pieces, "piece")
        );
        let parts = [
            (self.heap_bytes, heap),
            (self.other_bytes, format!("{} in other mappings", bytes(self.other_bytes))),
            (self.stack_bytes, format!("{} in stacks", bytes(self.stack_bytes))),
            (
                self.data_bytes,
                format!("{} in written data of programs and libraries", bytes(self.data_bytes)),
            ),
        ];
        let parts: Vec<String> =
            parts.into_iter().filter(|(bytes, _)| *bytes > 0).map(|(_, text)| text).collect();
        format!("resident without a file at {}: {}", duration(self.time_ns), parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn kept() -> KeptMemory {
        KeptMemory::of(&MemoryReading {
            time_ns: 2_000_000_000,
            anonymous_bytes: 100 * MIB,
            heap_bytes: 80 * MIB,
            heap_pieces: 3,
            stack_bytes: 2 * MIB,
            data_bytes: 0,
            ..MemoryReading::default()
        })
    }

    #[test]
    fn free_is_what_no_live_block_can_have() {
        assert_eq!(kept().free_bytes((10 * MIB, MIB)), 38 * MIB);
        assert_eq!(kept().free_bytes((90 * MIB, 1)), 0);
    }

    #[test]
    fn parts_add_up_and_those_without_bytes_are_left_out() {
        assert_eq!(
            kept().text(),
            "resident without a file at 2.000 s: 80.0 MiB in the C library's heap (3 pieces), 18.0 MiB in other \
             mappings, 2.00 MiB in stacks"
        );
    }
}
