//! Free blocks in tcmalloc's thread caches and central lists (verified: gperftools 2.10).
//!
//! ```text
//! thread's cache: 128 lists of 32 bytes: first | u32 length | ... | u32 size at 24
//!                 4096 u32 bytes in it ... 4144 next cache, 4152 the one before
//! central lists:  one each 1216 bytes: 8 class ... 1152 u32 slots in use
//! ```

use std::collections::HashSet;

use heapr_glibc_heap::HeapMemory;

use super::class_sizes::ClassSizes;
use super::words::{self, END_AVMA};

const LISTS: usize = 128;
const LIST_WORDS: usize = 4;
const CACHE_WORDS: usize = LISTS * LIST_WORDS + 8;
const NEXT_WORD: usize = LISTS * LIST_WORDS + 6;

/// Bytes in all threads' caches, found by the pointers to them in the module's data.
pub(super) fn in_caches(data: &[u64], sizes: &ClassSizes, memory: &impl HeapMemory) -> Option<u64> {
    const MOST_CACHES: usize = 1 << 16;
    let mut left = heads(data, sizes, memory);
    let (mut sum, mut seen) = (None, HashSet::new());
    while let Some(avma) = left.pop() {
        if seen.len() > MOST_CACHES || !seen.insert(avma) {
            continue;
        }
        if let Some((bytes, neighbours)) = cache(avma, sizes, memory) {
            sum = Some(sum.unwrap_or(0_u64).saturating_add(bytes));
            left.extend(neighbours.into_iter().filter(|avma| *avma != 0));
        }
    }
    sum
}

/// Pointers in the data to memory that has the size of class 1 at the offset where a cache has it.
fn heads(data: &[u64], sizes: &ClassSizes, memory: &impl HeapMemory) -> Vec<u64> {
    const MOST_HEADS: usize = 1 << 16;
    let is_address = |word: &u64| (0x1_0000..END_AVMA).contains(word) && word.is_multiple_of(64);
    let found: HashSet<u64> = data.iter().copied().filter(is_address).take(MOST_HEADS).collect();
    let found: Vec<u64> = found.into_iter().collect();
    let places: Vec<u64> = found.iter().map(|avma| avma + (LIST_WORDS as u64 + 3) * 8).collect();
    let first_sizes = words::records::<1>(memory, &places);
    let is_head =
        |size: &Option<[u64; 1]>| size.is_some_and(|[word]| Some(word & 0xffff_ffff) == sizes.of(1));
    found.into_iter().zip(first_sizes).filter(|(_, size)| is_head(size)).map(|(avma, _)| avma).collect()
}

/// Bytes of a thread's cache, and the addresses of its neighbours.
fn cache(avma: u64, sizes: &ClassSizes, memory: &impl HeapMemory) -> Option<(u64, [u64; 2])> {
    let words = words::run(memory, avma, CACHE_WORDS);
    let size_of = |class: usize| words.get(class * LIST_WORDS + 3).map(|word| *word & 0xffff_ffff);
    let is_cache =
        words.len() == CACHE_WORDS && (1..sizes.count()).all(|class| size_of(class) == sizes.of(class));
    if !is_cache {
        return None;
    }
    let bytes = words[LISTS * LIST_WORDS] & 0xffff_ffff;
    Some((bytes, [words[NEXT_WORD], words[NEXT_WORD + 1]]))
}

/// Bytes in the slots of the central lists, which hold chains of blocks for threads to fetch.
pub(super) fn in_slots(data: &[u64], sizes: &ClassSizes) -> Option<u64> {
    const STRIDE_WORDS: usize = 1216 / 8;
    /// Index of the used slots, from the class on, which is the second word of its list.
    const SLOTS_WORD: usize = 1152 / 8 - 1;
    const MOST_SLOTS: u64 = 64;
    let class_at = |base: usize, class: usize| data.get(base + class * STRIDE_WORDS).copied();
    let base = (0..data.len())
        .find(|base| (1..sizes.count()).all(|class| class_at(*base, class) == Some(class as u64)))?;
    let slots = (1..sizes.count()).map(|class| {
        let used = data.get(base + class * STRIDE_WORDS + SLOTS_WORD).map_or(0, |word| word & 0xffff_ffff);
        let size = sizes.of(class).unwrap_or(1);
        used.min(MOST_SLOTS).saturating_mul(chain_blocks(size)).saturating_mul(size)
    });
    Some(slots.fold(0, u64::saturating_add))
}

/// Number of blocks that move between a thread and the central list at once.
fn chain_blocks(size: u64) -> u64 {
    ((64 << 10) / size).clamp(2, 32)
}
