//! Compares pairs of neighbouring stack words with expected values.

use core::arch::asm;
use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_cmpeq_epi32, _mm_load_si128, _mm_movemask_epi8, _mm_set1_epi32,
    _mm_srli_epi64,
};

/// Two adjacent words, the one at the lower address first.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct Pair(pub(crate) [u64; 2]);

/// Whether all pairs compared so far are equal to the expected ones. (Without a jump for each pair:
/// they nearly always are.)
#[derive(Clone, Copy)]
pub(crate) struct AllEqual(__m128i);

impl AllEqual {
    /// Returns the state before the first comparison.
    #[inline(always)]
    pub(crate) fn so_far() -> Self {
        // SAFETY: SSE2 is part of every x86-64, here and below.
        Self(unsafe { _mm_set1_epi32(-1) })
    }

    /// Compares the pair at `offset_bytes` above an anchor. The lower 16 bits of each expected word
    /// are ignored, and the upper 16 bits of each word in memory must be 0.
    ///
    /// # Safety
    /// 1. Both words are readable.
    #[inline(always)]
    pub(crate) unsafe fn and_shifted(self, (anchor, offset_bytes): (usize, usize), expected: &Pair) -> Self {
        let words: __m128i;
        // SAFETY: (1). As volatile as the single reads: the words belong to the program's running
        // functions.
        unsafe {
            asm!(
                "movdqu {}, [{} + {}]",
                out(xmm_reg) words, in(reg) anchor, in(reg) offset_bytes,
                options(nostack, preserves_flags, readonly)
            );
        }
        // SAFETY: as in `so_far`; a pair is aligned.
        unsafe {
            let expected = _mm_srli_epi64::<16>(_mm_load_si128(core::ptr::from_ref(expected).cast()));
            Self(_mm_and_si128(self.0, _mm_cmpeq_epi32(words, expected)))
        }
    }

    /// Returns true if all pairs were equal.
    #[inline(always)]
    pub(crate) fn holds(self) -> bool {
        // SAFETY: as in `so_far`.
        unsafe { _mm_movemask_epi8(self.0) == 0xffff }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_of_each_word_counts() {
        let mut memory = [0, 0x7fff_1234_5678, 0xffff_9abc_def0, 0];
        let expected = Pair([memory[1] << 16 | 0xabcd, memory[2] << 16]);
        let holds = |memory: &[u64; 4]| {
            let place = (memory.as_ptr() as usize, 8);
            // SAFETY: two words of the array.
            unsafe { AllEqual::so_far().and_shifted(place, &expected).and_shifted(place, &expected).holds() }
        };
        assert!(AllEqual::so_far().holds() && holds(&memory));
        for bit in 0..256 {
            memory[bit / 64] ^= 1 << (bit % 64);
            assert_eq!(holds(&memory), !(64..192).contains(&bit), "bit {bit}");
            memory[bit / 64] ^= 1 << (bit % 64);
        }
    }
}
