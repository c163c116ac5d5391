//! Frames that were unwound to replace cached ones: see [`crate::stack::repair`].

use core::mem::MaybeUninit;

use crate::frames::frame::Word;

/// Largest number of frames that are repaired in one stack.
const REPAIRED_MAX: usize = 16;
/// Largest number of words of a frame: its return address and the frame pointer. Only realigned
/// frames read a third.
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

/// The frames that were unwound, innermost first. They take 1 KiB, which the program's stack may
/// not have, so a level holds them. All zero: empty.
pub(crate) struct Repairs {
    repaired: [MaybeUninit<Repaired>; REPAIRED_MAX],
    pub(crate) count: usize,
}

impl Repairs {
    /// Returns room for the next frame. Its words are written directly into their final location.
    /// Words that were written singly must reach the cache before they can be copied as a whole.
    /// (That would take a fifth of the time of the whole repair.)
    #[inline(always)]
    pub(crate) fn room(&mut self) -> Option<*mut Repaired> {
        Some(self.repaired.get_mut(self.count)?.as_mut_ptr())
    }

    #[inline(always)]
    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = &Repaired> + ExactSizeIterator {
        let written = self.repaired.iter().take(self.count);
        // SAFETY: `count` is raised only after a frame is written.
        written.map(|repaired| unsafe { repaired.assume_init_ref() })
    }
}
