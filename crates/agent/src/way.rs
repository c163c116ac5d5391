//! The way that a stack took from its top down to a frame that it shares with others.
//!
//! ```text
//! start (pc, sp, bp)  --words-->  base frame (sp, bp, path, number from the outer end)
//! ```
//!
//! It is proof in the same sense as the kept stack (see [`crate::stack`]): unwinding is a pure function of the state and of
//! the words read, so the same start and the same words lead to the same base. Comparing them takes a tenth of the
//! time of unwinding, and the node is known, if the base has the same path. (Python, redis, Node, clang and jq have
//! 3.3 to 4.1 such frames in each new stack, which took 60 ns.)

use crate::kept_stack::{Frame, Start, Word, read};
use crate::x86_64::{AllEqual, Pair};

/// Words of a way: a return address for each frame, and some frame pointers.
const WORDS_MAX: usize = 24;

/// A word that a way's rules have read.
///
/// ```text
///  63                             16  15  14           0
/// +---------------------------------+----+--------------+
/// | value                           | r  | offset       |    r: a return address; offset: words above the start's stack pointer
/// +---------------------------------+----+--------------+
/// ```
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
struct WayWord(u64);

const IS_RETURN: u64 = 1 << 15;
const OFFSET_MASK: u64 = IS_RETURN - 1;

impl WayWord {
    /// The word, and what of it does not fit (0: all does).
    #[inline(always)]
    fn new(word: Word, start_sp: usize, is_return: bool) -> (Self, u64) {
        let (value, offset_bytes) = (word.value as u64, word.address.wrapping_sub(start_sp) as u64);
        let packed = value << 16 | u64::from(is_return) << 15 | (offset_bytes >> 3 & OFFSET_MASK);
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

    /// The bits in which the word is not what was read: 0 if it is.
    ///
    /// # Safety
    /// 1. The word is readable.
    #[inline(always)]
    unsafe fn changes(self, start_sp: usize) -> usize {
        // SAFETY: (1).
        unsafe { read(start_sp.wrapping_add(self.offset_bytes())) ^ self.value() }
    }
}

/// One way, in four cache lines of which most use two. All zero: none.
///
/// ```text
/// words   |s 0|s 1| ... |s n|                 |ret 1 .. |bp 1, ret 1|bp 0, ret 0|
///          those that stand alone  -->         <--  those of frames that keep the frame pointer below the return address, compared
///                                                   as one
/// ```
///
/// In both the outermost frame's come first.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Way {
    start: Start,
    /// Of the path to the base, whose last frame's address is the outermost return address of the words.
    base_hash: u64,
    base_sp: usize,
    base_bp: usize,
    /// Of the whole stack.
    pub(crate) node: u32,
    /// Number of the base frame from the outer end.
    pub(crate) base_index: u32,
    code_epoch: u32,
    /// Offset of the highest word, in words.
    span: u16,
    /// Words that stand alone; with [`NEEDS_BP`].
    singles: u8,
    pairs: u8,
    words: [WayWord; WORDS_MAX],
}

/// The program's frame pointer register matters at the start (see [`Frame::needs_bp`]).
const NEEDS_BP: u8 = 1 << 7;

const _: () = assert!(size_of::<Way>() == 256 && core::mem::offset_of!(Way, words) % size_of::<Pair>() == 0);

/// What a way is made from.
#[derive(Clone, Copy)]
pub(crate) struct Unwound<'a> {
    pub(crate) start: Start,
    pub(crate) code_epoch: u32,
    /// The whole stack's node.
    pub(crate) node: u32,
    /// The frame that the way leads to, and its number from the outer end.
    pub(crate) base: Frame,
    pub(crate) base_index: usize,
    /// The frames from there inwards, outermost first.
    pub(crate) frames: &'a [Frame],
    /// The words of the whole stack.
    pub(crate) words: *const Word,
}

impl Unwound<'_> {
    /// Whether it is short enough for a way.
    #[inline(always)]
    pub(crate) fn is_short(&self) -> bool {
        self.frames.last().is_some_and(|top| self.words_until(top) <= WORDS_MAX)
    }

    #[inline(always)]
    fn words_until(&self, top: &Frame) -> usize {
        top.words_end.wrapping_sub(self.base.words_end) as usize
    }
}

impl Way {
    /// Becomes that of a stack. `false`: some word does not fit, and the way is none now.
    ///
    /// # Safety
    /// 1. `unwound.words` holds as many words as its frames say.
    /// 2. It is short.
    #[inline(always)]
    pub(crate) unsafe fn set(&mut self, unwound: &Unwound<'_>) -> bool {
        let Some(top) = unwound.frames.last() else { return false };
        let (start, base) = (unwound.start, unwound.base);
        let (mut misfit, mut span) = (0, 0);
        let mut packed = |word: Word, is_return: bool| {
            let (packed, rest) = WayWord::new(word, start.sp, is_return);
            misfit |= rest;
            span = span.max(packed.0 & OFFSET_MASK);
            packed
        };
        let (mut singles, mut pairs) = (0_u8, 0_u8);
        let mut number = base.words_end;
        // From both ends: there is room for all, as it is short.
        let mut places = self.words.iter_mut();
        for frame in unwound.frames {
            // A frame's words: where its rule finds the stack pointer, if it must look; the return address; the frame pointer.
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
                        (*lower, *upper) = (packed(of_bp, false), packed(of_return, true));
                        pairs = pairs.wrapping_add(1);
                        number = number.wrapping_add(2);
                        continue;
                    }
                }
                let Some(place) = places.next() else { return false };
                *place = packed(word(number), is_return);
                singles = singles.wrapping_add(1);
                number = number.wrapping_add(1);
            }
        }
        self.start = start;
        self.base_hash = base.hash;
        self.base_sp = base.sp;
        self.base_bp = base.bp;
        self.node = unwound.node;
        self.base_index = unwound.base_index as u32;
        self.code_epoch = unwound.code_epoch;
        self.span = span as u16;
        self.singles = singles | if top.needs_bp { NEEDS_BP } else { 0 };
        self.pairs = pairs;
        misfit == 0
    }

    /// Whether a stack that begins at `start` goes this way, to a frame of the `depth` kept ones.
    ///
    /// # Safety
    /// 1. `start.sp` lies on a mapped stack that is readable up to `high`.
    /// 2. `kept` holds `depth` frames.
    #[inline(always)]
    pub(crate) unsafe fn leads_from(
        &self,
        start: Start,
        code_epoch: u32,
        high: usize,
        kept: *const Frame,
        depth: usize,
    ) -> bool {
        if self.start.pc != start.pc
            || self.start.sp != start.sp
            || (self.singles & NEEDS_BP != 0 && self.start.bp != start.bp)
            || self.code_epoch != code_epoch
            || self.base_index as usize >= depth
            || start.sp.wrapping_add(usize::from(self.span) << 3) >= high
        {
            return false;
        }
        // SAFETY: (2), below the depth.
        let base = unsafe { &*kept.add(self.base_index as usize) };
        if base.hash != self.base_hash
            || base.sp != self.base_sp
            || (base.needs_bp && base.bp != self.base_bp)
        {
            return false;
        }
        // SAFETY: (1); no word lies above the highest, which was seen to lie below `high`.
        let singles =
            self.singles().fold(0, |changes, word| changes | unsafe { word.changes(start.sp) }) == 0;
        if self.pairs == 0 {
            return singles;
        }
        let pairs = self.pairs().fold(AllEqual::so_far(), |stand, pair| {
            let [lower, _] = pair.0;
            // SAFETY: as above; a pair's words lie side by side, the lower one first.
            unsafe { stand.and_shifted((start.sp, WayWord(lower).offset_bytes()), pair) }
        });
        singles & pairs.holds()
    }

    #[inline(always)]
    fn singles(&self) -> impl Iterator<Item = &WayWord> {
        self.words.iter().take(usize::from(self.singles & !NEEDS_BP))
    }

    #[inline(always)]
    fn pairs(&self) -> impl Iterator<Item = &Pair> {
        let pairs = self.words.rchunks_exact(2).take(usize::from(self.pairs));
        // SAFETY: two words, of which the first lies at a multiple of a pair's size in the way, which is aligned.
        pairs.map(|pair| unsafe { &*pair.as_ptr().cast::<Pair>() })
    }

    /// The frames' return addresses, outermost first.
    pub(crate) fn return_addresses(&self) -> impl Iterator<Item = usize> {
        let of_pairs = self.pairs().map(|&Pair([_, upper])| WayWord(upper));
        let of_singles = self.singles().copied().filter(|word| word.0 & IS_RETURN != 0);
        let (mut of_pairs, mut of_singles) = (of_pairs.peekable(), of_singles.peekable());
        let outer_first = core::iter::from_fn(move || {
            let offset = |word: &WayWord| word.offset_bytes();
            // The one that lies higher is further out.
            let is_pair = of_pairs.peek().map(offset) > of_singles.peek().map(offset);
            if is_pair { of_pairs.next() } else { of_singles.next() }
        });
        // The first is the base's own, the start's is in no word.
        outer_first.map(WayWord::value).skip(1).chain([self.start.pc])
    }
}
