//! A memory range that is a stack.

/// A readable range of stack, `low..high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackRange {
    pub(crate) low: usize,
    pub(crate) high: usize,
}

impl StackRange {
    /// Range that holds no address.
    pub(crate) const EMPTY: Self = Self { low: 0, high: 0 };

    /// True if a frame with stack pointer `sp` on this stack may read the word at `address`:
    /// between the stack pointer and the upper end. A function that a signal interrupted
    /// (`is_exact`) may already have popped a register that its table still names. That word still
    /// exists in the red zone of 128 bytes (read only within the page that `sp` is on).
    #[inline(always)]
    pub(crate) fn may_read(self, address: usize, sp: usize, is_exact: bool) -> bool {
        const RED_ZONE_BYTES: usize = 128;
        let is_above = address >= sp;
        let is_in_red_zone =
            is_exact && sp.wrapping_sub(address) <= RED_ZONE_BYTES && address >> 12 == sp >> 12;
        (is_above || is_in_red_zone)
            && address & 7 == 0
            && self.high > 8
            && address <= self.high.wrapping_sub(8)
    }

    #[inline(always)]
    pub(crate) fn contains(self, address: usize) -> bool {
        address.wrapping_sub(self.low) < self.high.wrapping_sub(self.low)
    }
}
