//! CPython's pools for small objects, each with blocks of one size, recognised by their headers.
//!
//! ```text
//! pool, 16 KiB (before 3.10: 4 KiB):
//!  0 u32 blocks in use   8 first free   16, 24 neighbours   32 u32 arena   36 u32 size class
//! 40 u32 next offset    44 u32 last offset: pool - size of a block
//! ```

use std::ops::Range;

use heapr_glibc_heap::HeapMemory;
use heapr_proc::page_bytes;
use heapr_proc::smaps::MappingPages;

use crate::claims::{Claim, Claims, range_of};
use crate::class::{Class, ToldBy};

const HEADER_BYTES: u64 = 48;
const ALIGNMENT_BYTES: u64 = 16;
const MOST_CLASS: u32 = 64;

/// Contents of the pools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PythonPools {
    /// Number of pools.
    pub pools: u64,
    /// Bytes of blocks in use.
    pub used_bytes: u64,
    /// Bytes of pools.
    pub pool_bytes: u64,
}

/// Claims anonymous memory with pools in it. Called for processes with Python only.
pub(crate) fn claim(mappings: &[MappingPages], memory: &impl HeapMemory, claims: &mut Claims) -> PythonPools {
    /// Pool sizes, newer first: a large pool's header is at a multiple of the small size, too.
    const POOL_SIZES: [u64; 2] = [16 << 10, 4 << 10];
    let mut all = PythonPools::default();
    for pool_bytes in POOL_SIZES {
        let mut found = Vec::new();
        for one in
            mappings.iter().filter(|one| crate::is_private_anonymous(&one.mapping) && one.pages.rss_bytes > 0)
        {
            for range_avma in claims.free(range_of(&one.mapping)) {
                look(range_avma, pool_bytes, memory, &mut found, &mut all);
            }
        }
        claims.add_many(found);
        if all.pools > 0 {
            break;
        }
    }
    all
}

fn look(
    range_avma: Range<u64>,
    pool_bytes: u64,
    memory: &impl HeapMemory,
    found: &mut Vec<Claim>,
    all: &mut PythonPools,
) {
    /// Size of an arena: smaller gaps between pools belong to it.
    const ARENA_BYTES: u64 = 1 << 20;
    let mut pool_avma = range_avma.start.next_multiple_of(pool_bytes);
    let mut run: Option<(u64, u64)> = None;
    let mut runs = Vec::new();
    let mut headers = Headers::default();
    while pool_avma + pool_bytes <= range_avma.end {
        let header = headers.at(pool_avma..range_avma.end, pool_bytes, memory);
        if let Some(used_bytes) = header.and_then(|header| used_in_pool(&header, pool_avma, pool_bytes)) {
            all.pools += 1;
            all.pool_bytes += pool_bytes;
            all.used_bytes += used_bytes;
            match &mut run {
                Some((_, end_avma)) if pool_avma - *end_avma < ARENA_BYTES => {
                    *end_avma = pool_avma + pool_bytes
                }
                _ => runs.extend(run.replace((pool_avma, pool_avma + pool_bytes))),
            }
        }
        pool_avma += pool_bytes;
    }
    runs.extend(run);
    // Less than a pool lies between an arena's border and its first pool.
    let is_near = |bytes: u64| bytes < pool_bytes + page_bytes();
    found.extend(runs.into_iter().map(|(start_avma, end_avma)| {
        let start_avma = if is_near(start_avma - range_avma.start) { range_avma.start } else { start_avma };
        // Pools are taken from an arena's beginning on: memory behind the last one is the arena's
        // rest.
        let rest_avma = end_avma.saturating_add(ARENA_BYTES).min(range_avma.end);
        Claim {
            range_avma: start_avma..rest_avma,
            class: Class::PythonArenas,
            part: "pools".to_owned(),
            told_by: ToldBy::Contents,
        }
    }));
}

/// Headers of pools, read many at once.
#[derive(Default)]
struct Headers {
    /// Headers still to be returned, in reverse order; `None` for one that cannot be read.
    coming: Vec<Option<[u8; HEADER_BYTES as usize]>>,
}

impl Headers {
    /// Next header, at the start of `range_avma`. Reads the following ones, too, if none is left.
    fn at(
        &mut self,
        range_avma: Range<u64>,
        pool_bytes: u64,
        memory: &impl HeapMemory,
    ) -> Option<[u8; HEADER_BYTES as usize]> {
        const AT_ONCE: usize = 512;
        if self.coming.is_empty() {
            let places = range_avma.clone().step_by(pool_bytes as usize).take(AT_ONCE);
            let places: Vec<Range<u64>> = places
                .filter(|at| at + HEADER_BYTES <= range_avma.end)
                .map(|at| at..at + HEADER_BYTES)
                .collect();
            let mut bytes = vec![0; places.len() * HEADER_BYTES as usize];
            let read = memory.read_ranges(&places, &mut bytes);
            let headers = bytes.as_chunks::<{ HEADER_BYTES as usize }>().0.iter().zip(read);
            let is_whole = |read: usize| read == HEADER_BYTES as usize;
            self.coming = headers.map(|(header, read)| is_whole(read).then_some(*header)).rev().collect();
        }
        self.coming.pop()?
    }
}

/// Bytes of blocks in use; `None` if this is not the header of a pool.
fn used_in_pool(header: &[u8; HEADER_BYTES as usize], pool_avma: u64, pool_bytes: u64) -> Option<u64> {
    let half = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
    let (used, class) = (u64::from(half(0)), half(36));
    if class >= MOST_CLASS {
        return None;
    }
    let block_bytes = (u64::from(class) + 1) * ALIGNMENT_BYTES;
    let (next_offset, last_offset) = (u64::from(half(40)), u64::from(half(44)));
    let first_free_avma = word(8);
    let is_pool = last_offset == pool_bytes - block_bytes
        && (HEADER_BYTES..=pool_bytes).contains(&next_offset)
        && used <= (pool_bytes - HEADER_BYTES) / block_bytes
        && (first_free_avma == 0 || (pool_avma..pool_avma + pool_bytes).contains(&first_free_avma));
    is_pool.then_some(used * block_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(used: u32, class: u32, next: u32, last: u32) -> [u8; 48] {
        let mut header = [0; 48];
        for (at, value) in [(0, used), (36, class), (40, next), (44, last)] {
            header[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        header
    }

    #[test]
    fn a_pool_is_told_by_its_last_offset() {
        assert_eq!(used_in_pool(&header(3, 1, 48 + 96, 16384 - 32), 0x10_0000, 16384), Some(96));
        assert_eq!(used_in_pool(&header(3, 1, 48 + 96, 16384 - 48), 0x10_0000, 16384), None);
        assert_eq!(used_in_pool(&header(600, 1, 48, 16384 - 32), 0x10_0000, 16384), None);
        assert_eq!(used_in_pool(&[0; 48], 0x10_0000, 16384), None);
    }
}
