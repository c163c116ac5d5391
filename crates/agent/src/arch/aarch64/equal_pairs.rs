//! Compares pairs of neighbouring stack words with expected values.

/// Two adjacent words, the one at the lower address first.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct Pair(pub(crate) [u64; 2]);

/// Bits in which the pairs compared so far differ from the expected ones. (Without a jump for each
/// pair: they nearly always are equal.)
#[derive(Clone, Copy)]
pub(crate) struct AllEqual(u64);

impl AllEqual {
    /// Returns the state before the first comparison.
    #[inline(always)]
    pub(crate) fn so_far() -> Self {
        Self(0)
    }

    /// Compares the pair at `offset_bytes` above an anchor. The lower 16 bits of each expected word
    /// are ignored, and the upper 16 bits of each word in memory must be 0.
    ///
    /// # Safety
    /// 1. Both words are readable.
    #[inline(always)]
    pub(crate) unsafe fn and_shifted(self, (anchor, offset_bytes): (usize, usize), expected: &Pair) -> Self {
        let place = anchor.wrapping_add(offset_bytes) as *const u64;
        // SAFETY: (1). Volatile: the words belong to the program's running functions.
        let (low, high) = unsafe { (place.read_volatile(), place.add(1).read_volatile()) };
        let &Pair([expected_low, expected_high]) = expected;
        Self(self.0 | (low ^ expected_low >> 16) | (high ^ expected_high >> 16))
    }

    /// Returns true if all pairs were equal.
    #[inline(always)]
    pub(crate) fn holds(self) -> bool {
        self.0 == 0
    }
}
