//! Frames that were unwound to take the place of kept ones: see [`crate::stack::repair`].

use core::mem::MaybeUninit;

use crate::frames::frame::Word;

/// Frames repaired in one stack, at most.
const REPAIRED_MAX: usize = 16;
/// Words of a frame: its return address and the frame pointer; only realigned frames read a third.
pub(crate) const WORDS_MAX: usize = 2;

/// New state of a frame.
#[derive(Clone, Copy)]
pub(crate) struct Repaired {
    pub(crate) index: usize,
    pub(crate) pc: usize,
    pub(crate) bp: usize,
    pub(crate) first_word: usize,
    pub(crate) count: usize,
    pub(crate) words: [MaybeUninit<Word>; WORDS_MAX],
}

/// The frames that were unwound, innermost first. They are 1 KiB, which the program's stack may not
/// have: a level keeps them. All zero: none.
pub(crate) struct Repairs {
    repaired: [MaybeUninit<Repaired>; REPAIRED_MAX],
    pub(crate) count: usize,
}

impl Repairs {
    /// Room for the next frame. Its words are written where they stay: what was written as single
    /// words must reach the cache before it can be copied as a whole (a fifth of the time that
    /// all this takes).
    #[inline(always)]
    pub(crate) fn room(&mut self) -> Option<*mut Repaired> {
        Some(self.repaired.get_mut(self.count)?.as_mut_ptr())
    }

    #[inline(always)]
    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = &Repaired> + ExactSizeIterator {
        let written = self.repaired.iter().take(self.count);
        // SAFETY: the first `count` are counted once they are written.
        written.map(|repaired| unsafe { repaired.assume_init_ref() })
    }
}
