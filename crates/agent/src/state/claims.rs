//! Whether a thread claims the regions of addresses that it meets (see `event_clock`).
//!
//! A claim costs cache misses: the thread's own, and that of the thread that owned the region (110
//! ns on one machine, 410 on another). Each event in an owned region saves 9 ns. So each claim is
//! timed, and a thread claims on credit, which it pays back by the words that it records until the
//! next claim. Threads that share all their memory run out of it. They leave all regions to nobody
//! for a few buffers, and for four times as many each time that they find it so again, until they
//! end a buffer with nearly all of it paid back.

/// A region's word that names no thread.
pub(crate) const NOBODY: u32 = 0;
/// What no region's word is.
const NO_THREAD: u32 = u32::MAX;

/// What a level of a thread has found so far.
#[derive(Debug)]
pub(crate) struct Claims {
    /// Owner of the regions that the thread leaves as they are: nobody, or while it claims all,
    /// [`NO_THREAD`].
    pub(crate) left: u32,
    credit_ticks: u32,
    /// Where the buffer stood at the last claim.
    position: u32,
    /// Buffers until the thread claims regions again, and how many it was at the last time.
    wait: u8,
    last_wait: u8,
}

/// What each word that is recorded in an owned region saves: `rdtscp` takes 9 ns more than `rdtsc`,
/// 23 ticks at 2.6 GHz; an allocation has two words and a free one.
const WORD_TICKS: u32 = 16;
/// How many times what the thread itself waits for it a claim costs: the owner waits, too, until it
/// has found out. (Once in place of twice is no better for Node.)
const OWNERS_PART: u32 = 2;
/// A claim is taken to cost no more than this (1.6 µs at 2.6 GHz): else the thread lost its
/// processor meanwhile.
const CLAIM_TICKS_MAX: u32 = 1 << 12;
/// What a thread may spend on claims although nothing follows them: some hundred of them, which it
/// takes to see through the bursts in which Node's threads work.
const CREDIT_TICKS: u32 = 1 << 17;
/// Buffers for which a thread claims no region, at most. With this, threads that have no use for it
/// spend a hundredth of their time on claims.
const WAIT_MAX: u8 = 63;

impl Claims {
    pub(crate) const fn new() -> Self {
        Self { left: NO_THREAD, credit_ticks: CREDIT_TICKS, position: 0, wait: 0, last_wait: 0 }
    }

    /// A region was claimed for an event that is to be written at `position` of the buffer, which
    /// took some ticks.
    pub(crate) fn claimed(&mut self, position: u32, took_ticks: u64) {
        // What the last buffer held behind its last claim is not counted.
        let words = position.checked_sub(self.position).unwrap_or(position);
        self.position = position;
        let saved_ticks = words.saturating_mul(WORD_TICKS);
        let took_ticks = u32::try_from(took_ticks).unwrap_or(u32::MAX).min(CLAIM_TICKS_MAX);
        let credit_ticks = self.credit_ticks.saturating_add(saved_ticks).min(CREDIT_TICKS);
        match credit_ticks.checked_sub(took_ticks.wrapping_mul(OWNERS_PART)) {
            Some(credit_ticks) => self.credit_ticks = credit_ticks,
            None => {
                self.left = NOBODY;
                self.last_wait = self.last_wait.wrapping_mul(4).wrapping_add(3).min(WAIT_MAX);
                self.wait = self.last_wait;
            }
        }
    }

    /// The thread begins its next buffer, after which it may claim regions again.
    pub(crate) fn next_buffer(&mut self) {
        if self.left != NOBODY {
            // Who pays nearly all back has use for claims again; who only runs out of credit slowly
            // has not.
            if self.credit_ticks >= CREDIT_TICKS / 8 * 7 {
                self.last_wait = 0;
            }
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

    /// Claims of a thread whose every event meets another thread's region, within a thousand
    /// buffers: `words` from event to event, and what each claim takes by its number.
    fn claims(words: u32, took_ticks: impl Fn(usize) -> u64) -> (usize, usize) {
        const BUFFER_WORDS: u32 = 8192;
        let mut claims = Claims::new();
        let (mut made, mut events) = (0, 0);
        for _ in 0..1_000 {
            claims.next_buffer();
            for position in (0..BUFFER_WORDS).step_by(words as usize) {
                events += 1;
                if claims.left == NO_THREAD {
                    claims.claimed(position, took_ticks(made));
                    made += 1;
                }
            }
        }
        (made, events)
    }

    #[test]
    fn whoever_claims_in_vain_claims_less_often() {
        for (words, took_ticks) in [(1, 50), (1, 1_000), (8, 100), (8, 250), (32, 1_000)] {
            let (made, events) = claims(words, |_| took_ticks);
            assert!(
                made > 1_000 && made < events / 10,
                "{made} of {events}, with {words} words from one to the next: each took {took_ticks} ticks"
            );
        }
    }

    #[test]
    fn whose_claims_pay_claims_always() {
        for (words, took_ticks) in [(1, 8), (8, 60), (32, 250), (128, 1_000)] {
            let (made, events) = claims(words, |_| took_ticks);
            assert_eq!(made, events, "with {words} words from one to the next: each took {took_ticks} ticks");
        }
        // One that lost its processor meanwhile, or whose clock went back, tells nothing of the
        // others.
        let (made, events) = claims(8, |number| if number % 1_000 == 0 { u64::MAX } else { 50 });
        assert_eq!(made, events);
    }
}
