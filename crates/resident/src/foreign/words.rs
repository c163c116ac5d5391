//! Reads many words of another process's memory at once.

use std::collections::HashMap;

use heapr_glibc_heap::HeapMemory;
use heapr_known::machine::HERE;
use heapr_proc::page_bytes;

/// Exclusive upper bound of the addresses of programs.
pub(super) const END_AVMA: u64 = HERE.address_limit;

/// Reads a run of words, up to the first that cannot be read.
pub(super) fn run(memory: &impl HeapMemory, start_avma: u64, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; count.saturating_mul(8)];
    let read = memory.read(start_avma, &mut bytes);
    bytes[..read].as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Reads `N` words at each of `places`; `None` if one of them cannot be read. Pages that are not in
/// memory are not read, as that would allocate them.
pub(super) fn records<const N: usize>(memory: &impl HeapMemory, places: &[u64]) -> Vec<Option<[u64; N]>> {
    let mut pages = TouchedPages { memory, known: HashMap::new() };
    let last_byte = N as u64 * 8 - 1;
    let is_there: Vec<bool> =
        places.iter().map(|place| pages.has(*place) && pages.has(place.saturating_add(last_byte))).collect();
    let there = places.iter().zip(&is_there).filter(|(_, is_there)| **is_there);
    let wanted: Vec<u64> =
        there.flat_map(|(place, _)| (0..N as u64).map(move |at| place.wrapping_add(at * 8))).collect();
    let mut words = vec![None; wanted.len()];
    // In batches: each word is named to the kernel by a record.
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

/// Cache of the pages that are in memory.
struct TouchedPages<'a, M> {
    memory: &'a M,
    known: HashMap<u64, bool>,
}

impl<M: HeapMemory> TouchedPages<'_, M> {
    fn has(&mut self, avma: u64) -> bool {
        let page_avma = avma / page_bytes() * page_bytes();
        let touched = || self.memory.touched_pages(page_avma, 1).is_none_or(|pages| pages == [true]);
        *self.known.entry(page_avma).or_insert_with(touched)
    }
}
