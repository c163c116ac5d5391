//! Words of another process's memory, many at once.

use std::collections::HashMap;

use heapr_glibc_heap::{HeapMemory, PAGE_BYTES};

/// Addresses that a program can have.
pub(super) const END_AVMA: u64 = 1 << 47;

/// A run of words; those that cannot be read are missing at its end.
pub(super) fn run(memory: &impl HeapMemory, start_avma: u64, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; count.saturating_mul(8)];
    let read = memory.read(start_avma, &mut bytes);
    bytes[..read].as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// `N` words from each of `places` on; `None` where one of them cannot be read. What is not in
/// memory is not brought there.
pub(super) fn records<const N: usize>(memory: &impl HeapMemory, places: &[u64]) -> Vec<Option<[u64; N]>> {
    let mut pages = TouchedPages { memory, known: HashMap::new() };
    let last_byte = N as u64 * 8 - 1;
    let is_there: Vec<bool> =
        places.iter().map(|place| pages.has(*place) && pages.has(place.saturating_add(last_byte))).collect();
    let there = places.iter().zip(&is_there).filter(|(_, is_there)| **is_there);
    let wanted: Vec<u64> =
        there.flat_map(|(place, _)| (0..N as u64).map(move |at| place.wrapping_add(at * 8))).collect();
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
    let mut found = words.as_chunks::<N>().0.iter().map(record);
    is_there.iter().map(|is_there| if *is_there { found.next().flatten() } else { None }).collect()
}

/// Which pages are in memory, asked once each.
struct TouchedPages<'a, M> {
    memory: &'a M,
    known: HashMap<u64, bool>,
}

impl<M: HeapMemory> TouchedPages<'_, M> {
    fn has(&mut self, avma: u64) -> bool {
        let page_avma = avma / PAGE_BYTES * PAGE_BYTES;
        let touched = || self.memory.touched_pages(page_avma, 1).is_none_or(|pages| pages == [true]);
        *self.known.entry(page_avma).or_insert_with(touched)
    }
}
