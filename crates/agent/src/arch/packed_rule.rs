//! Types of an unwind rule that do not depend on the processor: its fields in one word, and the
//! result of a step.

use core::num::NonZeroU64;

/// A kind and two signed numbers in a word, which is not 0:
///
/// ```text
///  63  60 59                          30 29                           0
/// +------+------------------------------+------------------------------+
/// | kind | a (30 bits, signed)          | b (30 bits, signed)          |
/// +------+------------------------------+------------------------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PackedRule(NonZeroU64);

impl PackedRule {
    pub(super) const fn new(kind: u64, a: i64, b: i64) -> Self {
        const FIELD: u64 = (1 << 30) - 1;
        let bits = kind << 60 | (a.cast_unsigned() & FIELD) << 30 | (b.cast_unsigned() & FIELD);
        match NonZeroU64::new(bits) {
            Some(bits) => Self(bits),
            None => Self(NonZeroU64::MAX),
        }
    }

    /// Packs the numbers; `None` if one does not fit.
    pub(super) fn fitting(kind: u64, a: i64, b: i64) -> Option<Self> {
        const LIMIT: i64 = 1 << 29;
        let fits = |value: i64| (-LIMIT..LIMIT).contains(&value);
        (fits(a) && fits(b)).then(|| Self::new(kind, a, b))
    }

    #[inline(always)]
    pub(super) fn from_bits(bits: u64) -> Option<Self> {
        NonZeroU64::new(bits).map(Self)
    }

    #[inline(always)]
    pub(super) fn bits(self) -> u64 {
        self.0.get()
    }

    #[inline(always)]
    pub(super) fn kind(self) -> u64 {
        self.0.get() >> 60
    }

    /// True if the kind is one of these.
    #[inline(always)]
    pub(super) fn is_one_of(self, kinds: &[u64]) -> bool {
        kinds.iter().fold(0, |mask, kind| mask | 1_u64 << kind) >> self.kind() & 1 != 0
    }

    #[inline(always)]
    pub(super) fn a(self) -> usize {
        ((self.0.get() << 4).cast_signed() >> 34) as usize
    }

    #[inline(always)]
    pub(super) fn b(self) -> usize {
        ((self.0.get() << 34).cast_signed() >> 34) as usize
    }
}

/// Register from which a frame's CFA is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// The stack pointer.
    StackPointer,
    /// The frame pointer.
    FramePointer,
}

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The caller's state. After a signal frame `pc` is the interrupted address plus one, so that
    /// `pc - 1` always lies in the right instruction.
    Caller {
        /// Return address.
        pc: usize,
        /// Stack pointer after the return.
        sp: usize,
        /// Frame pointer register.
        bp: usize,
    },
    /// The frame has no caller.
    Root,
    /// (pc, sp, bp) do not suffice.
    Slow,
    /// A stack word could not be read.
    Unreadable,
}
