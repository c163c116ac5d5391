//! Addresses of a process, and the reach of jumps.

/// Largest distance in bytes of a trampoline area: 2 GiB, the range of a jump, with a margin for
/// the distance between function and area.
pub(crate) const JUMP_DISTANCE: u64 = (1 << 31) - (64 << 20);

/// Address in a word that may be a return address: the word.
pub(crate) fn code_address(word: u64) -> u64 {
    word
}
