//! Pools of the object allocator: which blocks are in use.

use heapr_proc::Mapping;
use rustc_hash::FxHashSet;

use super::objects::is_pointer;
use super::runtime::Runtime;
use crate::pages::Pages;
use crate::symbols::data_of;
use heapr_known::cpython::{ArenaList, Layout};

const ARENA_BYTES: u64 = 48;
const POOL_HEAD_BYTES: u64 = 48;
/// Largest size class: blocks of 512 bytes.
const SIZE_CLASSES: u32 = 32;
/// Largest number of arenas.
const ARENAS_MAX: u64 = 1 << 22;
/// Least number of arenas for which the list has room.
const ARENAS_LEAST: u64 = 16;
const STATE_ARENAS: u64 = 512;
const STATE_ARENAS_MAX: u64 = 520;
const POOL_ARENA: u64 = 32;
/// Number of objects that vote on the location of the list.
const VOTERS: usize = 64;

/// An arena: its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arena {
    pub(super) start_avma: u64,
    pub(super) end_avma: u64,
    /// End of the pools that were ever used.
    used_end_avma: u64,
}

/// A pool: blocks of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pool {
    pub(super) avma: u64,
    pub(super) block_bytes: u64,
    /// Number of blocks that were ever used.
    block_count: u32,
}

impl Pool {
    /// Address of a block.
    pub(super) fn block(&self, number: usize) -> u64 {
        self.avma + POOL_HEAD_BYTES + number as u64 * self.block_bytes
    }

    /// Distance of an address in the pool from the start of its block.
    pub(super) fn offset_in_block(&self, avma: u64) -> u64 {
        avma.wrapping_sub(self.avma + POOL_HEAD_BYTES) % self.block_bytes
    }

    /// Reads the head of a pool; `None` if no block of it is in use.
    pub(super) fn at(pages: &Pages<'_>, layout: &Layout, avma: u64) -> Option<Self> {
        let (count, size_class) = (pages.half(avma)?, pages.half(avma + 36)?);
        let next_offset = u64::from(pages.half(avma + 40)?).min(layout.pool_bytes);
        if count == 0 || size_class >= SIZE_CLASSES || next_offset < POOL_HEAD_BYTES {
            return None;
        }
        let block_bytes = 16 * (u64::from(size_class) + 1);
        let block_count = ((next_offset - POOL_HEAD_BYTES) / block_bytes) as u32;
        Some(Self { avma, block_bytes, block_count })
    }

    /// Sets `used` to whether each block is in use: those in the list of free ones are not.
    pub(super) fn read_used(&self, pages: &Pages<'_>, used: &mut Vec<bool>) {
        used.clear();
        used.resize(self.block_count as usize, true);
        let mut free_avma = pages.word_or_zero(self.avma + 8);
        for _ in 0..self.block_count {
            let Some(offset) = free_avma.checked_sub(self.avma + POOL_HEAD_BYTES) else { break };
            match used.get_mut((offset / self.block_bytes) as usize) {
                Some(used) if offset % self.block_bytes == 0 && *used => *used = false,
                // Not in this pool, or a list that leads into itself.
                _ => break,
            }
            free_avma = pages.word_or_zero(free_avma);
        }
    }
}

/// Finds all arenas. `known` are some objects of the collector, whose pools lead to the list where
/// it has no symbol.
pub(super) fn find(pages: &Pages<'_>, runtime: &Runtime, mappings: &[Mapping], known: &[u64]) -> Vec<Arena> {
    let layout = &runtime.layout;
    let mut arenas = Vec::new();
    match layout.arenas {
        ArenaList::Hidden => {
            if let Some((list_avma, least)) = hidden_list(pages, runtime, mappings, known) {
                read_list(pages, layout, list_avma, least, &mut arenas);
            }
        }
        ArenaList::Interpreter(_) | ArenaList::Block(_) => {
            let mut seen = FxHashSet::default();
            for &interpreter_avma in &runtime.interpreters {
                let state_avma = match layout.arenas {
                    ArenaList::Block(offset) => pages.word_or_zero(interpreter_avma + offset),
                    ArenaList::Interpreter(offset) => interpreter_avma + offset,
                    ArenaList::Hidden => 0,
                };
                if !is_pointer(state_avma) {
                    continue;
                }
                let list_avma = pages.word_or_zero(state_avma + STATE_ARENAS);
                let count = u64::from(pages.half(state_avma + STATE_ARENAS_MAX).unwrap_or(0));
                // Interpreters that share a lock share their arenas, too.
                if is_pointer(list_avma) && seen.insert(list_avma) {
                    let room = ARENAS_MAX.saturating_sub(arenas.len() as u64);
                    let count = count.min(room);
                    let all = (0..count).filter_map(|number| read_arena(pages, layout, list_avma, number));
                    arenas.extend(all);
                }
            }
        }
    }
    arenas.sort_unstable_by_key(|arena| arena.start_avma);
    // Each pool is of one arena: one that begins in another is false.
    let mut last_end_avma = 0;
    arenas.retain(|arena: &Arena| {
        let is_apart = arena.start_avma >= last_end_avma;
        if is_apart {
            last_end_avma = arena.end_avma;
        }
        is_apart
    });
    arenas
}

fn read_arena(pages: &Pages<'_>, layout: &Layout, list_avma: u64, number: u64) -> Option<Arena> {
    let at_avma = list_avma.checked_add(number * ARENA_BYTES)?;
    let (start_avma, next_pool) = (pages.word(at_avma)?, pages.word(at_avma + 8)?);
    let end_avma = start_avma.checked_add(layout.arena_bytes)?;
    let is_one = is_pointer(start_avma) && (start_avma..=end_avma).contains(&next_pool);
    is_one.then_some(Arena { start_avma, end_avma, used_end_avma: next_pool })
}

fn read_list(pages: &Pages<'_>, layout: &Layout, list_avma: u64, least: u64, arenas: &mut Vec<Arena>) {
    for number in 0..ARENAS_MAX {
        let address = list_avma.checked_add(number * ARENA_BYTES).and_then(|at_avma| pages.word(at_avma));
        let arena = read_arena(pages, layout, list_avma, number).filter(|arena| {
            let first_pool = arena.start_avma.next_multiple_of(layout.pool_bytes);
            arena.used_end_avma <= first_pool || pages.half(first_pool + POOL_ARENA) == Some(number as u32)
        });
        match (arena, address) {
            (Some(arena), _) => arenas.push(arena),
            // An unused entry of the list.
            (None, Some(_)) if number < least => {}
            _ => return,
        }
    }
}

/// Finds the list of arenas where it has no symbol, and its least number of entries.
///
/// It is the word of the module's data by which most pools lead to an arena that has them.
fn hidden_list(
    pages: &Pages<'_>,
    runtime: &Runtime,
    mappings: &[Mapping],
    known: &[u64],
) -> Option<(u64, u64)> {
    let layout = &runtime.layout;
    let step = (known.len() / VOTERS).max(1);
    let voters: Vec<(u64, u64)> = known
        .iter()
        .step_by(step)
        .filter_map(|&object_avma| {
            let pool_avma = object_avma / layout.pool_bytes * layout.pool_bytes;
            Some((pool_avma, u64::from(pages.half(pool_avma + POOL_ARENA)?)))
        })
        .filter(|&(_, number)| number < ARENAS_MAX)
        .collect();
    let votes_for = |list_avma: u64, voters: &[(u64, u64)]| {
        let has = |&&(pool_avma, number): &&(u64, u64)| {
            read_arena(pages, layout, list_avma, number)
                .is_some_and(|arena| (arena.start_avma..arena.end_avma).contains(&pool_avma))
        };
        voters.iter().filter(has).count()
    };
    let first = voters.get(..8.min(voters.len()))?;
    let mut best = (0, 0);
    for (start_avma, end_avma) in data_of(mappings, &runtime.module) {
        pages.words(start_avma, (end_avma - start_avma) / 8, |_, word| {
            if is_pointer(word) && votes_for(word, first) > 0 {
                let votes = votes_for(word, &voters);
                if votes > best.0 {
                    best = (votes, word);
                }
            }
        });
    }
    let greatest = voters.iter().map(|&(_, number)| number + 1).max()?;
    // The list doubles when it is full.
    let least = greatest.next_power_of_two().max(ARENAS_LEAST);
    (best.0 * 2 > voters.len()).then_some((best.1, least))
}

/// Appends the pools of an arena of which a block is in use.
pub(super) fn add_pools(pages: &Pages<'_>, layout: &Layout, arena: &Arena, pools: &mut Vec<Pool>) {
    let mut pool_avma = arena.start_avma.next_multiple_of(layout.pool_bytes);
    let end_avma = arena.used_end_avma.min(arena.end_avma);
    while pool_avma + layout.pool_bytes <= end_avma.max(pool_avma) && pool_avma < end_avma {
        pools.extend(Pool::at(pages, layout, pool_avma));
        pool_avma += layout.pool_bytes;
    }
}
