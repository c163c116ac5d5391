//! Words of another process's memory, many at once.

use heapr_glibc_heap::HeapMemory;

/// Addresses that a program can have.
pub(super) const END_AVMA: u64 = 1 << 47;

/// A run of words; those that cannot be read are missing at its end.
pub(super) fn run(memory: &impl HeapMemory, start_avma: u64, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; count.saturating_mul(8)];
    let read = memory.read(start_avma, &mut bytes);
    bytes[..read].as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// `count` words from each of `places` on; `None` where one of them cannot be read.
pub(super) fn records<const N: usize>(memory: &impl HeapMemory, places: &[u64]) -> Vec<Option<[u64; N]>> {
    let wanted: Vec<u64> =
        places.iter().flat_map(|place| (0..N as u64).map(move |at| place.wrapping_add(at * 8))).collect();
    let mut words = vec![None; wanted.len()];
    // Not all at once: each place is named to the kernel by a record of its own.
    const BATCH: usize = 4096;
    for (wanted, words) in wanted.chunks(BATCH).zip(words.chunks_mut(BATCH)) {
        memory.read_words(wanted, words);
    }
    let record = |words: &[Option<u64>; N]| {
        let mut record = [0; N];
        for (to, from) in record.iter_mut().zip(words) {
            *to = (*from)?;
        }
        Some(record)
    };
    words.as_chunks::<N>().0.iter().map(record).collect()
}
