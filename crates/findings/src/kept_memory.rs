//! Division of the resident memory without a file, from readings of the mappings.

use heapr_table::quantity::{bytes, duration, plural};
use heapr_trace::{MemoryPart, MemoryReading, ProcessIndex, Trace};

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
        let beside = live_count.saturating_mul(MemoryPart::BESIDE_BLOCK_BYTES);
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
        assert_eq!(kept().free_bytes((10 * MIB, MIB)), 54 * MIB);
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
