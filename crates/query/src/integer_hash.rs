//! Hashing of small integers.

/// A 64-bit hash of two words: the folded 128-bit product, as in wyhash. It does not resist hostile
/// keys: use it only where collisions do no harm. The tables that use it hold a few words of a
/// file, in a number that the reader bounds.
pub(crate) fn mix(first: u64, second: u64) -> u64 {
    let product = u128::from(first ^ 0x9e37_79b9_7f4a_7c15) * u128::from(second ^ 0xd6e8_feb8_6659_fd93);
    (product as u64) ^ ((product >> 64) as u64)
}
