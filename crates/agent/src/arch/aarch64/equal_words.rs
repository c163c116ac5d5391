//! Finds the words that are equal to a given one.

/// Returns a mask whose bit i is set if word i is `wanted`.
#[inline(always)]
pub(crate) fn equal_words(words: [u32; 4], wanted: u32) -> u32 {
    let [a, b, c, d] = words.map(|word| u32::from(word == wanted));
    a | b << 1 | c << 2 | d << 3
}
