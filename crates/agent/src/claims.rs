//! Whether a thread claims the regions of addresses that it meets (see `event_clock`).
//!
//! A claim costs some 100 ns: cache misses of its own, and of the thread that owned the region. Each event in an owned region saves 8 ns, and
//! more where threads wait for each other. So a thread claims on credit, which it pays back by the words that it records and by the time that passes
//! until the next claim. Threads that share all their memory, and do little but allocate, run out of it. They leave all regions to nobody for
//! a few buffers, and for four times as many each time that they find it so again.

/// A region's word that names no thread.
pub(crate) const NOBODY: u32 = 0;
/// What no region's word is.
const NO_THREAD: u32 = u32::MAX;

/// What a level of a thread has found so far.
#[derive(Debug)]
pub(crate) struct Claims {
    /// Owner of the regions that the thread leaves as they are: nobody, or while it claims all, [`NO_THREAD`].
    pub(crate) left: u32,
    credit_words: u32,
    credit_ticks: u64,
    /// Where the buffer stood at the last claim, and when that was.
    position: u32,
    ticks: u64,
    /// Buffers until the thread claims regions again, and how many it was at the last time.
    wait: u8,
    last_wait: u8,
}

/// Words that pay for a claim: two frees, or an allocation.
const CLAIM_WORDS: u32 = 2;
/// Ticks that pay for a claim: 1.6 µs at 2.6 GHz, so that claims take less than a sixteenth of a thread's time. Node's threads do with one in 3 to
/// 5 µs and gain by it. Two threads that do nothing but allocate from one arena would make one in 0.3 µs, and lose by it.
const CLAIM_TICKS: u64 = 1 << 12;
/// Claims that a thread makes although nothing follows them: it takes that many to see through the bursts in which Node's threads work.
const CREDIT_CLAIMS: u16 = 256;
/// Buffers for which a thread claims no region, at most. With this, threads that have no use for it spend a hundredth of their time on claims.
const WAIT_MAX: u8 = 63;

impl Claims {
    const CREDIT_WORDS: u32 = CREDIT_CLAIMS as u32 * CLAIM_WORDS;
    const CREDIT_TICKS: u64 = CREDIT_CLAIMS as u64 * CLAIM_TICKS;

    pub(crate) const fn new() -> Self {
        Self {
            left: NO_THREAD,
            credit_words: Self::CREDIT_WORDS,
            credit_ticks: Self::CREDIT_TICKS,
            position: 0,
            ticks: 0,
            wait: 0,
            last_wait: 0,
        }
    }

    /// A region was claimed at this time, for an event that is to be written at `position` of the buffer.
    pub(crate) fn claimed(&mut self, position: u32, ticks: u64) {
        // In the next buffer the difference is a large number.
        let words = position.wrapping_sub(self.position).min(Self::CREDIT_WORDS);
        let passed_ticks = ticks.wrapping_sub(self.ticks).min(Self::CREDIT_TICKS);
        (self.position, self.ticks) = (position, ticks);
        let words = self.credit_words.wrapping_add(words).min(Self::CREDIT_WORDS);
        let passed_ticks = self.credit_ticks.wrapping_add(passed_ticks).min(Self::CREDIT_TICKS);
        match (words.checked_sub(CLAIM_WORDS), passed_ticks.checked_sub(CLAIM_TICKS)) {
            (Some(words), Some(ticks)) => (self.credit_words, self.credit_ticks) = (words, ticks),
            _ => {
                self.left = NOBODY;
                self.last_wait = self.last_wait.wrapping_mul(4).wrapping_add(3).min(WAIT_MAX);
                self.wait = self.last_wait;
            }
        }
    }

    /// The thread begins its next buffer, after which it may claim regions again.
    pub(crate) fn next_buffer(&mut self) {
        if self.left != NOBODY {
            self.last_wait = 0;
        } else if let Some(wait) = self.wait.checked_sub(1) {
            self.wait = wait;
        } else {
            *self = Self { last_wait: self.last_wait, ..Self::new() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claims of a thread whose every event meets another thread's region, within a thousand buffers: `words` and `ticks` from event to event.
    fn claims(words: u32, ticks: u64) -> (usize, usize) {
        const BUFFER_WORDS: u32 = 8192;
        let (mut claims, mut now_ticks) = (Claims::new(), 0);
        let (mut made, mut events) = (0, 0);
        for _ in 0..1_000 {
            claims.next_buffer();
            for position in (0..BUFFER_WORDS).step_by(words as usize) {
                now_ticks += ticks;
                events += 1;
                if claims.left == NO_THREAD {
                    claims.claimed(position, now_ticks);
                    made += 1;
                }
            }
        }
        (made, events)
    }

    #[test]
    fn whoever_claims_in_vain_claims_less_often() {
        let (made, events) = claims(1, 10_000);
        assert!(
            made > 2_000 && made < events / 100,
            "{made} of {events}: too little is recorded between claims"
        );
        let (made, events) = claims(8, 700);
        assert!(made > 2_000 && made < events / 100, "{made} of {events}: they are too close together");
        let (made, events) = claims(8, 5_000);
        assert_eq!(made, events);
    }
}
