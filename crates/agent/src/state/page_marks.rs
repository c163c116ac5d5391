//! Tells the frees of samples from all others: a byte for each page of 4 KiB that counts the live
//! samples which begin there.
//!
//! ```text
//! address   63 .. 32 | 31 .. 12 | 11 .. 0
//!                      index of the byte          pages 4 GiB apart share one
//! ```
//!
//! A free looks at one byte, and goes on where it is 0. Where it is not, the free is recorded: a
//! *candidate*, of which the recorder knows whether it is a sample's. If it was, the recorder says so
//! in the process's slot, and one is taken off the byte here. A byte that is too high for a while
//! costs records and no more; too low it is never: it lies in private memory, so that a forked child
//! has it as of the fork, with the blocks.
//!
//! Pages that share a byte only add candidates, as few as pages have samples: one in a hundred or so.

use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering::*};

use heapr_ring::sys;
use heapr_wire::{PAGE_MARKS, PAGE_SHIFT, ProcessSlot};

use crate::state::AGENT;

/// A byte that has come so far stays there.
const MANY: u8 = 127;
/// With this bit, whatever is below: blocks that begin here were recorded each.
const EACH: u8 = 128;

/// The bytes; null: nothing was sampled yet. Read by assembly.
pub(crate) static MARKS: AtomicPtr<AtomicU8> = AtomicPtr::new(core::ptr::null_mut());

/// Makes the bytes, unless they are there. `false`: no memory.
#[cold]
pub(crate) fn prepare() -> bool {
    if !MARKS.load(Acquire).is_null() {
        return true;
    }
    let Ok(memory) = sys::map_anonymous(PAGE_MARKS, false) else { return false };
    let made = MARKS.compare_exchange(core::ptr::null_mut(), memory.cast(), AcqRel, Acquire);
    if made.is_err() {
        // SAFETY: the mapping just made, which nobody knows.
        unsafe { sys::unmap(memory, PAGE_MARKS) };
    }
    true
}

fn mark_of(index: usize) -> Option<&'static AtomicU8> {
    let marks = MARKS.load(Acquire);
    // SAFETY: null, or that many bytes, which stay mapped; the index is below.
    unsafe { (!marks.is_null()).then(|| &*marks.add(index & (PAGE_MARKS - 1))) }
}

#[inline(always)]
fn of_block(address: usize) -> Option<&'static AtomicU8> {
    mark_of(address >> PAGE_SHIFT)
}

/// Whether a block may be a sample.
#[inline(always)]
pub(crate) fn is_marked(address: usize) -> bool {
    of_block(address).is_some_and(|mark| mark.load(Relaxed) != 0)
}

/// A sample begins at this address.
#[cold]
pub(crate) fn add(address: usize) {
    if let Some(mark) = of_block(address) {
        let more = |now: u8| (now & MANY != MANY).then_some(now.wrapping_add(1));
        let _ = mark.fetch_update(Relaxed, Relaxed, more);
    }
}

/// A block that is recorded begins at this address, and so will others near it.
#[inline(always)]
pub(crate) fn add_each(address: usize) {
    if let Some(mark) = of_block(address)
        && mark.load(Relaxed) & EACH == 0
    {
        mark.fetch_or(EACH, Relaxed);
    }
}

/// Takes off what the recorder has said since: of samples that are freed.
#[cold]
pub(crate) fn take_off() {
    let Some(slot) = AGENT.slot() else { return };
    let ProcessSlot { unmarked, unmarked_told, unmarked_taken, .. } = slot;
    loop {
        let taken = unmarked_taken.load(Acquire);
        if taken == unmarked_told.load(Acquire) {
            return;
        }
        let Some(index) = place(unmarked, taken).map(|place| place.load(Relaxed)) else { return };
        // Two threads may read one place: only one of them takes it.
        if unmarked_taken.compare_exchange(taken, taken.wrapping_add(1), AcqRel, Relaxed).is_err() {
            continue;
        }
        if let Some(mark) = mark_of(index as usize) {
            let less = |now: u8| (![0, MANY].contains(&(now & MANY))).then_some(now.wrapping_sub(1));
            let _ = mark.fetch_update(Relaxed, Relaxed, less);
        }
    }
}

fn place(unmarked: &[AtomicU32], number: u32) -> Option<&AtomicU32> {
    unmarked.get(number as usize % unmarked.len().max(1))
}
