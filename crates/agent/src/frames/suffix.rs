//! A stack's suffix: its frames from the innermost one out to one that it shares with others,
//! remembered by their words.
//!
//! ```text
//! start (pc, sp, bp)  --words-->  base frame (sp, bp, path, number from the outer end)
//! ```
//!
//! A suffix is proof in the same sense as the cached stack (see [`crate::stack`]). Unwinding is a
//! pure function of the state and of the words read. So the same start and the same words lead to
//! the same base. Comparing the words takes a tenth of the time of unwinding, and the node is known
//! if the base has the same path. (Python, redis, Node, clang and jq have 3.3 to 4.1 such frames in
//! each new stack, which took 60 ns.)

use crate::frames::frame::{Frame, Start, Word, read};

use crate::arch::{AllEqual, Pair};

/// Largest number of words of a suffix: a return address for each frame, and some frame pointers.
const WORDS_MAX: usize = 24;

/// A word that a suffix's rules have read.
///
/// ```text
///  63                             16  15                0
/// +---------------------------------+------------------+
/// | value                           | offset           |
/// +---------------------------------+------------------+
/// ```
/// The offset is in words above the start's stack pointer.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
struct SuffixWord(u64);

const OFFSET_MASK: u64 = (1 << 16) - 1;

impl SuffixWord {
    /// Packs a word; also returns the bits that do not fit (0: all fit).
    #[inline(always)]
    fn new(word: Word, start_sp: usize) -> (Self, u64) {
        let (value, offset_bytes) = (word.value as u64, word.address.wrapping_sub(start_sp) as u64);
        let packed = value << 16 | (offset_bytes >> 3 & OFFSET_MASK);
        (Self(packed), value >> 48 | offset_bytes & !(OFFSET_MASK << 3))
    }

    #[inline(always)]
    fn value(self) -> usize {
        (self.0 >> 16) as usize
    }

    #[inline(always)]
    fn offset_bytes(self) -> usize {
        ((self.0 & OFFSET_MASK) << 3) as usize
    }

    /// Returns the bits in which the word differs from the one that was read; 0 if it is equal.
    ///
    /// # Safety
    /// 1. The word is readable.
    #[inline(always)]
    unsafe fn changes(self, start_sp: usize) -> usize {
        // SAFETY: (1).
        unsafe { read(start_sp.wrapping_add(self.offset_bytes())) ^ self.value() }
    }
}

/// One suffix, in four cache lines of which most suffixes use two. All zero: free.
///
/// ```text
/// words   |s 0|s 1| ... |s n|                 |ret 1 .. |bp 1, ret 1|bp 0, ret 0|
///          singles: compared one by one -->     <-- pairs, of frames that keep the frame pointer
///                                                  below the return address: compared as one
/// ```
///
/// Singles and pairs both begin with those of the outermost frame. Singles are compared two at a
/// time: if their number is odd, the last one is stored twice.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct StackSuffix {
    start: Start,
    /// Hash of the path to the base; the base's return address is the outermost return address
    /// among the words.
    base_hash: u64,
    base_sp: usize,
    base_bp: usize,
    /// Node of the whole stack.
    pub(crate) node: u32,
    /// Offset of the base frame in the array of cached frames, from the outermost one.
    base_offset_bytes: u32,
    /// Bit mask of the singles that are return addresses, by their numbers.
    returns: u32,
    /// Offset of the highest word, in words.
    span: u16,
    /// Number of singles, an even one.
    singles: u8,
    /// Number of pairs; with the flag [`NEEDS_BP`].
    pairs: u8,
    words: [SuffixWord; WORDS_MAX],
}

/// Flag: the program's frame pointer register matters at the start (see [`Frame::needs_bp`]).
const NEEDS_BP: u8 = 1 << 7;

const _: () = assert!(
    size_of::<StackSuffix>() == 256 && core::mem::offset_of!(StackSuffix, words) % size_of::<Pair>() == 0
);

/// The parts of an unwound stack from which a suffix is made.
#[derive(Clone, Copy)]
pub(crate) struct Unwound<'a> {
    pub(crate) start: Start,
    /// Node of the whole stack.
    pub(crate) node: u32,
    /// The frame to which the suffix leads, and its index from the outer end.
    pub(crate) base: Frame,
    pub(crate) base_index: usize,
    /// The frames inwards of the base, outermost first.
    pub(crate) frames: &'a [Frame],
    /// The words of the whole stack.
    pub(crate) words: *const Word,
}

impl Unwound<'_> {
    /// True if the frames have few enough words for a suffix.
    #[inline(always)]
    pub(crate) fn is_short(&self) -> bool {
        self.frames.last().is_some_and(|top| self.words_until(top) <= WORDS_MAX)
    }

    #[inline(always)]
    fn words_until(&self, top: &Frame) -> usize {
        top.words_end.wrapping_sub(self.base.words_end) as usize
    }
}

impl StackSuffix {
    /// Fills this suffix from a stack. Returns `false` if some word does not fit; the suffix is
    /// invalid then.
    ///
    /// # Safety
    /// 1. `unwound.words` holds as many words as its frames say.
    /// 2. The unwound frames are short ([`Unwound::is_short`]).
    #[inline(always)]
    pub(crate) unsafe fn set(&mut self, unwound: &Unwound<'_>) -> bool {
        let Some(top) = unwound.frames.last() else { return false };
        let (start, base) = (unwound.start, unwound.base);
        let (mut misfit, mut span) = (0, 0);
        let mut packed = |word: Word| {
            let (packed, rest) = SuffixWord::new(word, start.sp);
            misfit |= rest;
            span = span.max(packed.0 & OFFSET_MASK);
            packed
        };
        let (mut singles, mut pairs, mut returns) = (0_u8, 0_u8, 0_u32);
        let mut last_single = SuffixWord(0);
        let mut number = base.words_end;
        // Words are placed from both ends: there is room for all, as the suffix is short.
        let mut places = self.words.iter_mut();
        for frame in unwound.frames {
            // A frame's words are, in order: the one that holds the stack pointer, if its rule must
            // read it; the return address; the frame pointer.
            let return_number = frame.words_end.wrapping_sub(1).wrapping_sub(u32::from(frame.has_bp_word));
            // SAFETY: (1).
            let word = |number: u32| unsafe { *unwound.words.add(number as usize) };
            while number < frame.words_end {
                let is_return = number == return_number;
                if is_return && frame.has_bp_word {
                    let (of_return, of_bp) = (word(number), word(number.wrapping_add(1)));
                    if of_bp.address.wrapping_add(8) == of_return.address {
                        let (Some(upper), Some(lower)) = (places.next_back(), places.next_back()) else {
                            return false;
                        };
                        (*lower, *upper) = (packed(of_bp), packed(of_return));
                        pairs = pairs.wrapping_add(1);
                        number = number.wrapping_add(2);
                        continue;
                    }
                }
                let Some(place) = places.next() else { return false };
                last_single = packed(word(number));
                *place = last_single;
                returns |= u32::from(is_return) << singles;
                singles = singles.wrapping_add(1);
                number = number.wrapping_add(1);
            }
        }
        if singles % 2 != 0 {
            // There is an element left, because the number of remaining ones is odd, too.
            let Some(place) = places.next() else { return false };
            *place = last_single;
            singles = singles.wrapping_add(1);
        }
        self.start = start;
        self.base_hash = base.hash;
        self.base_sp = base.sp;
        self.base_bp = base.bp;
        self.node = unwound.node;
        let Ok(base_offset_bytes) = u32::try_from(unwound.base_index.wrapping_mul(size_of::<Frame>())) else {
            return false;
        };
        self.base_offset_bytes = base_offset_bytes;
        self.returns = returns;
        self.span = span as u16;
        self.singles = singles;
        self.pairs = pairs | if top.needs_bp { NEEDS_BP } else { 0 };
        misfit == 0
    }

    /// True if the suffix is of a stack that begins at `start`.
    #[inline(always)]
    pub(crate) fn begins_at(&self, start: Start) -> bool {
        self.start.pc == start.pc && self.start.sp == start.sp
    }

    /// Returns the index of the base frame from the outer end.
    #[inline(always)]
    pub(crate) fn base_index(&self) -> usize {
        self.base_offset_bytes as usize / size_of::<Frame>()
    }

    /// True if the base frame is one of the first `depth`.
    #[inline(always)]
    pub(crate) fn is_among(&self, depth: usize) -> bool {
        (self.base_offset_bytes as usize) < depth.wrapping_mul(size_of::<Frame>())
    }

    /// Returns the frame of `frames` to which this suffix leads a stack that begins at `start`. The
    /// caller must check that the frame is one of those that are cached.
    ///
    /// # Safety
    /// 1. `start.sp` lies on a mapped stack that is readable up to `high`.
    /// 2. The frames were cached at `frames` when the suffix was made, or were moved there.
    #[inline(always)]
    pub(crate) unsafe fn leads_from(
        &self,
        start: Start,
        high: usize,
        frames: *const Frame,
    ) -> Option<&Frame> {
        if self.start.pc != start.pc || self.start.sp != start.sp {
            return None;
        }
        // SAFETY: (2); room for frames is never given back. The offset is that of a frame.
        let base = unsafe { &*frames.wrapping_byte_add(self.base_offset_bytes as usize) };
        if base.hash != self.base_hash
            || (base.needs_bp && base.bp != self.base_bp)
            || start.sp.wrapping_add(usize::from(self.span) << 3) >= high
        {
            return None;
        }
        let mut differing = base.sp ^ self.base_sp;
        // SAFETY: (1); no word lies above the highest one, which was checked to lie below `high`.
        // There are `singles` of them, an even number.
        unsafe {
            let mut word = self.words.as_ptr();
            let end = word.add(usize::from(self.singles));
            while word != end {
                differing |= (*word).changes(start.sp) | (*word.add(1)).changes(start.sp);
                word = word.add(2);
            }
        }
        // SAFETY: (1).
        let leads_there =
            differing == 0 && (self.pairs == 0 || unsafe { self.pairs_lead_from(start.sp, start.bp) });
        leads_there.then_some(base)
    }

    /// Rest of [`StackSuffix::leads_from`], for suffixes with pairs, which are few.
    ///
    /// # Safety
    /// 1. As for [`StackSuffix::leads_from`]; the highest word was checked to lie below `high`.
    #[inline(never)]
    unsafe fn pairs_lead_from(&self, sp: usize, bp: usize) -> bool {
        if self.pairs & NEEDS_BP != 0 && self.start.bp != bp {
            return false;
        }
        let stand = self.pairs().fold(AllEqual::so_far(), |stand, pair| {
            let [lower, _] = pair.0;
            // SAFETY: (1); a pair's words lie side by side, the lower one first.
            unsafe { stand.and_shifted((sp, SuffixWord(lower).offset_bytes()), pair) }
        });
        stand.holds()
    }

    #[inline(always)]
    fn pairs(&self) -> impl Iterator<Item = &Pair> {
        let pairs = self.words.rchunks_exact(2).take(usize::from(self.pairs & !NEEDS_BP));
        // SAFETY: two words, of which the first lies at a multiple of a pair's size in the suffix,
        // which is aligned.
        pairs.map(|pair| unsafe { &*pair.as_ptr().cast::<Pair>() })
    }

    /// Returns the frames' return addresses, outermost first.
    pub(crate) fn return_addresses(&self) -> impl Iterator<Item = usize> {
        let of_pairs = self.pairs().map(|&Pair([_, upper])| SuffixWord(upper));
        // (A test of each bit by its number is slower: the compiler makes several shifts at once
        // with SSE.)
        let (words, singles, mut returns) = (&self.words, usize::from(self.singles), self.returns);
        let of_singles = core::iter::from_fn(move || {
            let number = returns.trailing_zeros() as usize;
            returns &= returns.wrapping_sub(1);
            words.get(number).copied().filter(|_| number < singles)
        });
        let (mut of_pairs, mut of_singles) = (of_pairs.peekable(), of_singles.peekable());
        let outer_first = core::iter::from_fn(move || {
            let offset = |word: &SuffixWord| word.offset_bytes();
            // The word at the higher address is further out.
            let is_pair = of_pairs.peek().map(offset) > of_singles.peek().map(offset);
            if is_pair { of_pairs.next() } else { of_singles.next() }
        });
        // The first word is the base's own return address; the start's `pc` is in no word.
        outer_first.map(SuffixWord::value).skip(1).chain([self.start.pc])
    }
}
