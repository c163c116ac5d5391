//! Finds the words that are equal to a given one.

use core::arch::x86_64::{
    _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_ps, _mm_set1_epi32,
};

/// Returns a mask whose bit i is set if word i is `wanted`.
#[inline(always)]
pub(crate) fn equal_words(words: [u32; 4], wanted: u32) -> u32 {
    // SAFETY: SSE2 is part of every x86-64; sixteen bytes are read from an array of sixteen bytes.
    unsafe {
        let words = _mm_loadu_si128((&raw const words).cast());
        let equal = _mm_cmpeq_epi32(words, _mm_set1_epi32(wanted.cast_signed()));
        _mm_movemask_ps(_mm_castsi128_ps(equal)).cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_of_the_equal_words() {
        for bits in 0..16_u32 {
            let words =
                [0, 1, 2, 3].map(|number| if bits >> number & 1 != 0 { u32::MAX - 1 } else { number });
            assert_eq!(equal_words(words, u32::MAX - 1), bits);
        }
    }
}
