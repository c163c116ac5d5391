//! The collector's lists of objects.

use super::layout::{Generations, Layout};
use super::objects::{self, is_pointer};
use super::runtime::Runtime;
use crate::pages::Pages;

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
    let layout: &Layout = runtime.layout;
    let expected = match layout.generations {
        Generations::Runtime(offset) => runtime.avma + offset,
        Generations::Interpreter(offset) => interpreter_avma + offset,
    };
    let all = |first: u64| (0..GENERATION_COUNT).map(move |number| first + number * GENERATION_BYTES);
    let near = (0..=SEARCH_BYTES)
        .step_by(4)
        .flat_map(|distance| [expected.wrapping_sub(distance), expected.wrapping_add(distance)]);
    let found = near.into_iter().find(|&first| all(first).all(|head| is_ring(pages, head)));
    let first = found.unwrap_or(expected);
    let permanent = [layout.permanent, layout.permanent + 4].map(|offset| first + offset);
    let permanent = permanent.into_iter().find(|&head| is_ring(pages, head));
    all(first).chain(permanent).collect()
}

/// Calls `take` with each object of the collector's lists.
pub(super) fn walk(pages: &Pages<'_>, runtime: &Runtime, mut take: impl FnMut(u64) -> bool) {
    let mut count = 0;
    for &interpreter_avma in &runtime.interpreters {
        for head_avma in heads(pages, runtime, interpreter_avma) {
            let mut at_avma = neighbour(pages.word_or_zero(head_avma));
            // An object that was taken before ends the walk: a list that leads into itself.
            while at_avma != head_avma && is_pointer(at_avma) && count < OBJECTS_MAX {
                count += 1;
                if !take(at_avma + objects::COLLECTOR_BYTES) {
                    break;
                }
                at_avma = neighbour(pages.word_or_zero(at_avma));
            }
        }
    }
}
