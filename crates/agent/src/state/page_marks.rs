//! Tells frees of samples from all other frees by a word for each page of 4 KiB.
//!
//! ```text
//! address   63 .. 48 | 47 .. 32 | 31 .. 12 | 11 .. 4 | 3 .. 0
//!                      identity   index      identity            pages 4 GiB apart share a word
//!
//! word      31 ............ 8 | 7    | 6 ...... 0
//!           identity of one   | each | samples that begin on the page and live
//! ```
//!
//! A free reads the low byte, and continues if it is 0. Otherwise the word says whether the block
//! is the page's only sample, or not a sample. If the word cannot say that, the free is recorded as
//! a *candidate*. That is so for a second sample, or for blocks that were all recorded. The
//! recorder notes in the process's slot that a candidate was a sample, and the agent then
//! decrements the count here. A count that is too high costs only extra records. A count is never
//! too low: the words are private memory, which a forked child has as of the fork, together with
//! the blocks.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

use heapr_ring::sys;
use heapr_wire::{DisableReason, PAGE_MARKS, PAGE_SHIFT, ProcessSlot, UNMARKED_MAX};

use crate::state::AGENT;

/// Mask of the number of samples of a page. A count that has reached this value stays there.
const COUNT: u32 = 127;
/// Flag: blocks that begin on this page were all recorded, whatever the count is.
const EACH: u32 = 128;
const IDENTITY: u32 = !255;

/// The words; null: no sample was taken yet. Read by assembly.
pub(crate) static MARKS: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());

/// Kind of a block that is about to be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freed {
    /// A block that was not recorded.
    NoSample,
    /// A sample; its page's mark no longer counts it.
    Sample,
    /// A block of which only the recorder knows whether it is a sample.
    Candidate,
}

/// Maps the words, unless they exist. Returns `false` if there is no memory.
#[cold]
pub(crate) fn prepare() -> bool {
    const BYTES: usize = PAGE_MARKS * size_of::<AtomicU32>();
    if !MARKS.load(Acquire).is_null() {
        return true;
    }
    let Ok(memory) = sys::map_anonymous(BYTES, false) else { return false };
    let made = MARKS.compare_exchange(core::ptr::null_mut(), memory.cast(), AcqRel, Acquire);
    if made.is_err() {
        // SAFETY: the mapping just made, whose address no other code has.
        unsafe { sys::unmap(memory, BYTES) };
    }
    true
}

fn mark_of(index: usize) -> Option<&'static AtomicU32> {
    let marks = MARKS.load(Acquire);
    // SAFETY: null, or that many words, which stay mapped; the index is below that number.
    unsafe { (!marks.is_null()).then(|| &*marks.add(index & (PAGE_MARKS - 1))) }
}

fn of_block(address: usize) -> Option<&'static AtomicU32> {
    mark_of(address >> PAGE_SHIFT)
}

/// Returns the bits that tell a block from others whose pages share a word; 0 if a word cannot hold
/// them.
fn identity(address: usize) -> u32 {
    let (above, slot) = ((address >> 32) as u32 & 0xffff, (address >> 4) as u32 & 0xff);
    if address & 15 != 0 || address >> 48 != 0 { 0 } else { above << 16 | slot << 8 }
}

/// Returns a word with one sample more; `None` if the count is full.
fn with_one_more(word: u32, address: usize) -> Option<u32> {
    match word & COUNT {
        COUNT => None,
        0 => Some((word & EACH | 1) | identity(address)),
        _ => Some(word.wrapping_add(1)),
    }
}

/// Returns the kind of a freed block according to a word, and the word after that free.
fn without(word: u32, address: usize) -> (Freed, u32) {
    let (known, count) = (word & IDENTITY, word & COUNT);
    if known != 0 && known == identity(address) && count != COUNT {
        return (Freed::Sample, (word & !IDENTITY).wrapping_sub(1));
    }
    let is_told = count == 0 || (count == 1 && known != 0);
    (if is_told && word & EACH == 0 { Freed::NoSample } else { Freed::Candidate }, word)
}

/// Returns a word with one sample less, without saying which; `None` if the count cannot be
/// lowered.
fn with_one_less(word: u32) -> Option<u32> {
    match word & COUNT {
        0 | COUNT => None,
        // The identity that is left belongs to no live sample.
        1 => Some(word & EACH),
        _ => Some(word.wrapping_sub(1)),
    }
}

/// Notes that a sample begins at this address.
#[cold]
pub(crate) fn add(address: usize) {
    if let Some(mark) = of_block(address) {
        let _ = mark.fetch_update(Relaxed, Relaxed, |word| with_one_more(word, address));
    }
}

/// Notes that a recorded block begins at this address, as all blocks near it will be recorded.
#[inline(always)]
pub(crate) fn add_each(address: usize) {
    if let Some(mark) = of_block(address)
        && mark.load(Relaxed) & EACH == 0
    {
        mark.fetch_or(EACH, Relaxed);
    }
}

/// Returns the kind of a block that is about to be freed, and unmarks a sample.
#[inline]
pub(crate) fn freed(address: usize) -> Freed {
    let Some(mark) = of_block(address) else { return Freed::NoSample };
    let mut word = mark.load(Relaxed);
    loop {
        let (freed, next) = without(word, address);
        if next == word {
            return freed;
        }
        match mark.compare_exchange_weak(word, next, Relaxed, Relaxed) {
            Ok(_) => return freed,
            Err(now) => word = now,
        }
    }
}

/// Lowers the counts for the freed samples that the recorder has reported since the last call.
/// Impossible numbers end the recording: the shared pages are being overwritten.
#[cold]
pub(crate) fn take_off() {
    let Some(slot) = AGENT.slot() else { return };
    if take_from(slot).is_err() {
        AGENT.end(DisableReason::PoolOverwritten);
    }
}

/// Error: the shared pages hold values that neither side writes.
#[derive(Debug, PartialEq, Eq)]
struct OutOfRange;

fn take_from(slot: &ProcessSlot) -> Result<(), OutOfRange> {
    let ProcessSlot { unmarked, unmarked_told, unmarked_taken, .. } = slot;
    // Reports that arrive during the loop are left for the next call.
    for _ in 0..UNMARKED_MAX {
        let taken = unmarked_taken.load(Acquire);
        let waiting = unmarked_told.load(Acquire).wrapping_sub(taken) as usize;
        if waiting == 0 {
            return Ok(());
        }
        if waiting > UNMARKED_MAX {
            // (Other threads may have taken some between the two loads, and more may have been
            // reported.)
            if unmarked_taken.load(Acquire) == taken {
                return Err(OutOfRange);
            }
            continue;
        }
        let Some(index) = place(unmarked, taken).map(|place| place.load(Relaxed)) else { return Ok(()) };
        // Two threads may read one element: only one of them takes it.
        if unmarked_taken.compare_exchange(taken, taken.wrapping_add(1), AcqRel, Relaxed).is_err() {
            continue;
        }
        if let Some(mark) = mark_of(index as usize) {
            let _ = mark.fetch_update(Relaxed, Relaxed, with_one_less);
        }
    }
    Ok(())
}

fn place(unmarked: &[AtomicU32], number: u32) -> Option<&AtomicU32> {
    unmarked.get(number as usize % unmarked.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: usize = 0x5555_1234_5670;
    const OTHER: usize = 0x5555_1234_5680;
    const FAR: usize = 0x7fff_1234_5670;

    #[test]
    fn a_pages_only_sample_is_told_from_all_others_and_taken_off_at_once() {
        let word = with_one_more(0, ONE).unwrap();
        assert_eq!(without(word, OTHER), (Freed::NoSample, word));
        assert_eq!(without(word, FAR), (Freed::NoSample, word), "the same place four gigabytes apart");
        assert_eq!(without(word, ONE), (Freed::Sample, 0));
    }

    #[test]
    fn of_two_samples_the_second_is_a_candidate_until_the_recorder_has_said_so() {
        let word = with_one_more(with_one_more(0, ONE).unwrap(), OTHER).unwrap();
        assert_eq!(without(word, OTHER), (Freed::Candidate, word));
        let (freed, left) = without(word, ONE);
        assert_eq!(freed, Freed::Sample);
        // The identity of the sample that is left is not known any more.
        assert_eq!(without(left, OTHER), (Freed::Candidate, left));
        assert_eq!(without(left, ONE), (Freed::Candidate, left));
        assert_eq!(with_one_less(left), Some(0));
        assert_eq!(with_one_less(word).map(|word| without(word, ONE).0), Some(Freed::Sample));
    }

    #[test]
    fn what_was_recorded_each_stays_a_candidate_and_a_full_count_stays_full() {
        let word = with_one_more(EACH, ONE).unwrap();
        assert_eq!(without(word, OTHER).0, Freed::Candidate);
        assert_eq!(without(word, ONE), (Freed::Sample, EACH));
        let full = (0..200).fold(0, |word, _| with_one_more(word, ONE).unwrap_or(word));
        assert_eq!(full & COUNT, COUNT);
        assert_eq!((without(full, ONE).0, with_one_less(full)), (Freed::Candidate, None));
        assert_eq!(with_one_less(0), None);
    }

    #[test]
    fn numbers_that_cannot_be_are_refused_and_no_walk_is_longer_than_its_places() {
        // SAFETY: consists of atomics, for which zeros are valid.
        let slot: ProcessSlot = unsafe { core::mem::zeroed() };
        slot.unmarked_told.store(UNMARKED_MAX as u32, Relaxed);
        assert_eq!(take_from(&slot), Ok(()));
        assert_eq!(slot.unmarked_taken.load(Relaxed), UNMARKED_MAX as u32);
        for (told, taken) in [(33_u32, 0_u32), (0, 1), (7, 7 ^ 1 << 31), (7 ^ 1 << 31, 7), (0, u32::MAX - 40)]
        {
            slot.unmarked_told.store(told, Relaxed);
            slot.unmarked_taken.store(taken, Relaxed);
            assert_eq!(take_from(&slot), Err(OutOfRange), "{told} told, {taken} taken");
            assert_eq!(slot.unmarked_taken.load(Relaxed), taken);
        }
        // Numbers that wrap around.
        slot.unmarked_told.store(3, Relaxed);
        slot.unmarked_taken.store(u32::MAX - 3, Relaxed);
        assert_eq!((take_from(&slot), slot.unmarked_taken.load(Relaxed)), (Ok(()), 3));
    }

    #[test]
    fn a_block_without_identity_is_a_candidate() {
        for address in [0, 0x1_0000_0000_0010, 0x5555_1234_5678] {
            let word = with_one_more(0, address).unwrap();
            assert_eq!(without(word, address), (Freed::Candidate, word), "{address:#x}");
        }
    }
}
