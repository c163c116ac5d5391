//! The chunks of one piece of heap, four bytes each, as the walk found them.

/// Neighbouring chunks, each beginning at the end of the one before.
///
/// ```text
/// entry: size in units of 16 bytes << 1 | looks used       (sizes under 32 GiB)
///        0, high half, low half of such an entry           (larger)
/// ```
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) start_avma: u64,
    /// Index of the arena in the ring; 0 is the main one.
    pub(super) arena: u32,
    entries: Vec<u32>,
}

/// A chunk of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentChunk {
    pub(super) chunk_avma: u64,
    pub(super) size_bytes: u64,
    /// Whether the chunk behind says that this one is used; true also for chunks in fastbins and
    /// thread caches.
    pub(super) looks_used: bool,
}

impl Segment {
    /// Creates a segment without chunks.
    pub(super) fn new(start_avma: u64, arena: u32) -> Self {
        Self { start_avma, arena, entries: Vec::new() }
    }

    /// Appends a chunk.
    #[inline]
    pub(super) fn push(&mut self, size_bytes: u64, looks_used: bool) {
        let entry = size_bytes >> 4 << 1 | u64::from(looks_used);
        match u32::try_from(entry) {
            Ok(entry) => self.entries.push(entry),
            Err(_) => self.entries.extend([0, (entry >> 32) as u32, entry as u32]),
        }
    }

    /// The chunks, in order of address.
    pub(super) fn chunks(&self) -> impl Iterator<Item = SegmentChunk> {
        let mut entries = self.entries.iter();
        let mut chunk_avma = self.start_avma;
        std::iter::from_fn(move || {
            let entry = match *entries.next()? {
                0 => u64::from(*entries.next()?) << 32 | u64::from(*entries.next()?),
                entry => u64::from(entry),
            };
            let size_bytes = entry >> 1 << 4;
            let chunk = SegmentChunk { chunk_avma, size_bytes, looks_used: entry & 1 != 0 };
            chunk_avma += size_bytes;
            Some(chunk)
        })
    }

    /// True if the segment holds no chunk.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_all_magnitudes_come_back() {
        let sizes = [32, 48, 1 << 20, (1 << 35) - 16, 1 << 35, 1 << 40, 32];
        let mut segment = Segment::new(0x1000, 0);
        for (index, size) in sizes.iter().enumerate() {
            segment.push(*size, index % 2 == 0);
        }
        let mut expected_avma = 0x1000;
        let mut count = 0;
        for (index, chunk) in segment.chunks().enumerate() {
            assert_eq!((chunk.chunk_avma, chunk.size_bytes), (expected_avma, sizes[index]));
            assert_eq!(chunk.looks_used, index % 2 == 0);
            expected_avma += chunk.size_bytes;
            count += 1;
        }
        assert_eq!(count, sizes.len());
    }
}
