//! The collector's lists of objects.

use super::objects::{self, is_pointer};
use super::runtime::Runtime;
use crate::pages::Pages;
use heapr_known::cpython::{Generations, Layout};

const GENERATION_BYTES: u64 = 24;
const GENERATION_COUNT: u64 = 3;
/// Distance in bytes from the expected location in which the generations are searched.
const SEARCH_BYTES: u64 = 256;
/// Largest number of objects in the lists; bounds the walk of false ones.
const OBJECTS_MAX: usize = 1 << 30;

/// Address of the neighbour in a list; the low bits are flags.
fn neighbour(word: u64) -> u64 {
    word & !3
}

/// Whether the head of a list leads around: the next one's previous is the head.
fn is_ring(pages: &Pages<'_>, head_avma: u64) -> bool {
    let next = neighbour(pages.word_or_zero(head_avma));
    is_pointer(next)
        && pages.word(next).is_some()
        && pages.word(next + 8).is_some_and(|previous| neighbour(previous) == head_avma)
}

/// Finds the heads of the lists of an interpreter. In the middle of a collection not all are whole;
/// then the table's location is used.
fn heads(pages: &Pages<'_>, runtime: &Runtime, interpreter_avma: u64) -> Vec<u64> {
    let layout: &Layout = &runtime.layout;
    let expected = match layout.generations {
        Generations::Runtime(offset) => runtime.avma + offset,
        Generations::Interpreter(offset) => interpreter_avma + offset,
    };
    let all = |first: u64| (0..GENERATION_COUNT).map(move |number| first + number * GENERATION_BYTES);
    let near = (0..=SEARCH_BYTES)
        .step_by(4)
        .flat_map(|distance| [expected.wrapping_sub(distance), expected.wrapping_add(distance)]);
    let found = near.into_iter().find(|&first| all(first).all(|head| is_ring(pages, head)));
    // Releases of a version differ by a few bytes.
    let ring_count = |first: u64| all(first).filter(|&head| is_ring(pages, head)).count();
    let likely = || {
        let near = [expected.wrapping_add(4), expected.wrapping_sub(4)].into_iter();
        let best = near.max_by_key(|&first| ring_count(first)).unwrap_or(expected);
        if ring_count(best) > ring_count(expected) { best } else { expected }
    };
    let first = found.unwrap_or_else(likely);
    let permanent = [layout.permanent, layout.permanent + 4].map(|offset| first + offset);
    let permanent = permanent.into_iter().find(|&head| is_ring(pages, head));
    all(first).chain(permanent).collect()
}

/// Calls `take` with each object of the collector's lists.
pub(super) fn walk(pages: &Pages<'_>, runtime: &Runtime, mut take: impl FnMut(u64) -> bool) {
    let mut count = 0;
    for &interpreter_avma in &runtime.interpreters {
        for head_avma in heads(pages, runtime, interpreter_avma) {
            walk_list(pages, head_avma, |at_avma| {
                count += 1;
                count <= OBJECTS_MAX && take(at_avma + objects::COLLECTOR_BYTES)
            });
        }
    }
}

/// Calls `take` with each entry of a list up to its head. A list that leads into itself without its
/// head ends after at most three rounds (Brent's search for cycles).
fn walk_list(pages: &Pages<'_>, head_avma: u64, mut take: impl FnMut(u64) -> bool) {
    let mut at_avma = neighbour(pages.word_or_zero(head_avma));
    let (mut met_avma, mut steps, mut limit) = (head_avma, 0_u64, 1_u64);
    while at_avma != head_avma && at_avma != met_avma && is_pointer(at_avma) && take(at_avma) {
        if steps == limit {
            (met_avma, steps, limit) = (at_avma, 0, limit * 2);
        }
        steps += 1;
        at_avma = neighbour(pages.word_or_zero(at_avma));
    }
}

#[cfg(test)]
mod tests {
    use heapr_native::Memory;

    use super::*;

    /// Links at 0x10000: entry N leads to the entry that the list says.
    struct Links(&'static [u64]);

    const FIRST_AVMA: u64 = 0x10000;

    impl Memory for Links {
        fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
            if address_avma != FIRST_AVMA {
                return 0;
            }
            for (word, next) in into.chunks_exact_mut(16).zip(self.0) {
                word[..8].copy_from_slice(&(FIRST_AVMA + next * 16).to_le_bytes());
            }
            into.len()
        }
    }

    fn walked(links: &'static [u64]) -> Vec<u64> {
        let memory = Links(links);
        let mut taken = Vec::new();
        walk_list(&Pages::of(&memory), FIRST_AVMA, |at_avma| {
            taken.push((at_avma - FIRST_AVMA) / 16);
            taken.len() < 1000
        });
        taken
    }

    #[test]
    fn a_list_ends_at_its_head_or_where_it_leads_into_itself() {
        assert_eq!(walked(&[1, 2, 3, 0]), [1, 2, 3]);
        assert!(walked(&[0]).is_empty());
        let cycles: [&'static [u64]; 3] = [&[1, 1], &[1, 2, 3, 4, 2], &[1, 2, 3, 4, 5, 6, 7, 1]];
        for cycle in cycles {
            let taken = walked(cycle);
            assert!(taken.len() <= 3 * cycle.len(), "{taken:?}");
            assert!((1..cycle.len() as u64).all(|number| taken.contains(&number)), "{taken:?}");
        }
    }
}
