//! A direct-mapped cache of a level's last lookups: results by the hash of code and instruction.

/// Results (never 0) by the hashes of their keys. All zero: empty.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Answers<const COUNT: usize>([(u64, u64); COUNT]);

/// Returns the hash of a key of these words; never 0.
#[inline(always)]
pub(crate) fn key<const N: usize>(words: [usize; N]) -> u64 {
    // The multiplications are independent and overlap.
    let spread = words.into_iter().map(|word| (word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let hash = spread.fold(0x51_7cc1_b727_220a_u64, |hash, word| hash.rotate_left(13) ^ word);
    (hash ^ hash >> 31).wrapping_mul(0xff51_afd7_ed55_8ccd) | 1
}

impl<const COUNT: usize> Answers<COUNT> {
    /// Returns the result, if it is cached.
    #[inline(always)]
    pub(crate) fn find(&mut self, key: u64) -> Option<u64> {
        let &mut (known, answer) = self.place(key);
        (known == key).then_some(answer)
    }

    #[inline(always)]
    pub(crate) fn keep(&mut self, key: u64, answer: u64) {
        *self.place(key) = (key, answer);
    }

    /// Drops all results, so that each is determined anew.
    pub(crate) fn forget(&mut self) {
        self.0.fill((0, 0));
    }

    #[inline(always)]
    fn place(&mut self, key: u64) -> &mut (u64, u64) {
        // SAFETY: inside the array.
        unsafe { &mut *self.0.as_mut_ptr().wrapping_add((key >> 40) as usize % COUNT) }
    }
}
