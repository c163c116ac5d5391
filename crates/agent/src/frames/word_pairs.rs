//! The words of a cached stack in a layout for repeated comparison.
//!
//! Code with frame pointers saves its caller's frame pointer right below the return address, and
//! both are words that the stack's frames have read. Such neighbours are compared as one:
//!
//! ```text
//! cached   outermost                                          innermost
//! words    |ret 0|bp 0|ret 1|ret 2|bp 2|ret 3|bp 3|
//! pairs    |bp 0, ret 0|bp 2, ret 2|bp 3, ret 3|             a pair: how far above the anchor, and both values
//! singles  |ret 1|
//! ends     |1, 0|1, 1|2, 1|3, 1|                             by frame: how many pairs and singles it and those outwards of it have
//! ```
//!
//! (Each of Node's 2.2 million stacks found by a suffix had 37 words from its base outwards, 34 of
//! them in pairs. Python and clang++ have almost no pairs, and their words stay as they were read.)

use crate::frames::frame::{Frame, Word, read};

use crate::arch::{AllEqual, Pair};

/// Largest numbers of pairs, singles and frames: the words of a longer stack stay as they were
/// read.
const PAIRS_MAX: usize = 96;
const SINGLES_MAX: usize = 32;
const FRAMES_MAX: usize = 128;

/// A cached stack's words in pairs. All zero: of no frame.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct WordPairs {
    /// Address that the offsets are counted from.
    anchor: usize,
    pairs: Laid<Pair, PAIRS_MAX>,
    singles: Laid<usize, SINGLES_MAX>,
    ends: [Ends; FRAMES_MAX],
}

/// Values, and the distance of each from the anchor in bytes.
#[derive(Debug)]
#[repr(C)]
struct Laid<T, const MAX: usize> {
    values: [T; MAX],
    offsets_bytes: [u32; MAX],
}

impl<T, const MAX: usize> Laid<T, MAX> {
    /// Adds a value to the first `count`. Returns `None` if there is no room for it, or it lies too
    /// far away.
    fn put(&mut self, count: &mut u8, value: T, offset_bytes: usize) -> Option<()> {
        let number = usize::from(*count);
        *self.offsets_bytes.get_mut(number)? = u32::try_from(offset_bytes).ok()?;
        *self.values.get_mut(number)? = value;
        *count = count.checked_add(1)?;
        Some(())
    }

    /// Returns the first `count` values, with their offsets.
    #[inline(always)]
    fn first(&self, count: u8) -> impl Iterator<Item = (&T, usize)> {
        let offsets_bytes = self.offsets_bytes.iter().map(|&offset_bytes| offset_bytes as usize);
        self.values.iter().zip(offsets_bytes).take(usize::from(count))
    }
}

/// Number of pairs and singles up to the end of a frame's words.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    pairs: u8,
    singles: u8,
}

impl WordPairs {
    /// Lays out the words of a stack. Returns `false` if it is too long or too far spread, or
    /// hardly any of its words are neighbours.
    ///
    /// # Safety
    /// 1. `words` holds as many words as the frames say.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn lay_out(&mut self, frames: &[Frame], words: *const Word) -> bool {
        // SAFETY: (1).
        unsafe { self.lay(frames, words) }.is_some_and(|ends| ends.pairs >= ends.singles)
    }

    /// Lays out the words; returns the numbers of pairs and singles of the whole stack.
    unsafe fn lay(&mut self, frames: &[Frame], words: *const Word) -> Option<Ends> {
        self.anchor = frames.last()?.sp;
        let above = |anchor: usize, word: Word| word.address.wrapping_sub(anchor);
        let (mut first, mut ends) = (0_usize, Ends::default());
        for (frame, place) in frames.iter().zip(&mut self.ends) {
            let end = frame.words_end as usize;
            while first < end {
                // SAFETY: (1) of `lay_out`.
                let word = unsafe { *words.add(first) };
                first = first.wrapping_add(1);
                // SAFETY: as above.
                let next = (first < end).then(|| unsafe { *words.add(first) });
                match next.filter(|next| next.address.wrapping_add(8) == word.address) {
                    Some(below) => {
                        let pair = Pair([below.value as u64, word.value as u64]);
                        self.pairs.put(&mut ends.pairs, pair, above(self.anchor, below))?;
                        first = first.wrapping_add(1);
                    }
                    None => self.singles.put(&mut ends.singles, word.value, above(self.anchor, word))?,
                }
            }
            *place = ends;
        }
        (frames.len() <= FRAMES_MAX).then_some(ends)
    }

    /// True if all words from a frame outwards are unchanged; the frame's index is counted from the
    /// outer end.
    ///
    /// # Safety
    /// 1. The stack was laid out, and has such a frame.
    /// 2. Its words are readable.
    #[inline(always)]
    pub(crate) unsafe fn stand(&self, frame_index: usize) -> bool {
        let Some(&ends) = self.ends.get(frame_index) else { return false };
        // SAFETY: (1), (2): both words of a pair were read.
        let of_pairs =
            self.pairs.first(ends.pairs).fold(AllEqual::so_far(), |so_far, (pair, offset_bytes)| unsafe {
                so_far.and((self.anchor, offset_bytes), pair)
            });
        let differing = self.singles.first(ends.singles).fold(0, |differing, (&single, offset_bytes)| {
            // SAFETY: (1), (2).
            differing | (unsafe { read(self.anchor.wrapping_add(offset_bytes)) } ^ single)
        });
        of_pairs.holds() && differing == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A stack in its own memory, the innermost frame at the lower end.
    struct Stack {
        memory: Vec<usize>,
        frames: Vec<Frame>,
        words: Vec<Word>,
    }

    impl Stack {
        /// Makes a stack of frames, outermost first. Each is described by its number of words,
        /// whether it saves the frame pointer, and whether right below its return address.
        fn new(shape: &[(usize, bool, bool)]) -> Self {
            let size: usize = shape.iter().map(|(words, ..)| words + 3).sum();
            let memory: Vec<usize> = (0..size).map(|number| number * 0x9e37_79b9).collect();
            let (mut frames, mut words, mut end) = (Vec::new(), Vec::new(), size);
            let address = |place: usize| memory.as_ptr().wrapping_add(place) as usize;
            for &(word_count, has_bp, is_below) in shape {
                let read = |place: usize| Word { address: address(place), value: memory[place] };
                words.push(read(end - 1));
                if has_bp {
                    words.push(read(if is_below { end - 2 } else { end - 3 }));
                }
                end -= word_count + 3;
                frames.push(Frame {
                    pc: 0,
                    sp: address(end),
                    bp: 0,
                    hash: 0,
                    words_end: words.len() as u32,
                    is_exact: false,
                    needs_bp: false,
                    settles_bp: false,
                    has_bp_word: has_bp,
                });
            }
            Self { memory, frames, words }
        }

        fn pairs(&self) -> Option<Box<WordPairs>> {
            // SAFETY: all fields may be zero.
            let mut pairs = Box::new(unsafe { core::mem::zeroed::<WordPairs>() });
            // SAFETY: the stack's own words.
            unsafe { pairs.lay_out(&self.frames, self.words.as_ptr()) }.then_some(pairs)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn they_stand_as_long_as_each_word_does(
            shape in prop::collection::vec((0_usize..4, any::<bool>(), prop::bool::weighted(0.9)), 1..40),
        ) {
            let mut stack = Stack::new(&shape);
            let Some(pairs) = stack.pairs() else {
                let kept = shape.iter().filter(|(_, has_bp, is_below)| *has_bp && *is_below).count();
                let singles = stack.words.len() - 2 * kept;
                prop_assert!(kept < singles || singles > SINGLES_MAX);
                return Ok(());
            };
            for place in 0..stack.memory.len() {
                let address = stack.memory.as_ptr().wrapping_add(place) as usize;
                let number = stack.words.iter().position(|word| word.address == address);
                stack.memory[place] ^= 1 << 40;
                for (index, frame) in stack.frames.iter().enumerate() {
                    let is_among = number.is_some_and(|number| number < frame.words_end as usize);
                    // SAFETY: one of the frames that were laid out, whose words still exist.
                    prop_assert_eq!(unsafe { pairs.stand(index) }, !is_among);
                }
                stack.memory[place] ^= 1 << 40;
            }
        }
    }

    #[test]
    fn a_stack_that_is_too_long_or_too_far_spread_or_has_no_neighbours_is_not_laid_out() {
        let laid_out =
            |frame_count: usize, has_bp| Stack::new(&vec![(1, has_bp, true); frame_count]).pairs().is_some();
        assert!(laid_out(PAIRS_MAX, true) && !laid_out(PAIRS_MAX + 1, true));
        assert!(!laid_out(3, false));
        let mut spread = Stack::new(&[(1, true, true); 3]);
        spread.words[1].address += 1 << 33;
        spread.words[0].address += 1 << 33;
        assert!(spread.pairs().is_none());
        // A word further in than the innermost frame: it lies on a signal handler's stack.
        let mut below = Stack::new(&[(1, true, true); 3]);
        below.frames[2].sp = below.words[5].address + 8;
        assert!(below.pairs().is_none());
    }
}
