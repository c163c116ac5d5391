//! Decides whether a thread claims the regions of addresses that it meets (see `event_clock`).
//!
//! A claim costs cache misses: the thread's own, and that of the thread that owned the region (110
//! ns on one machine, 410 on another). Each event in an owned region saves 9 ns. So each claim is
//! timed, and a thread claims on credit, which it pays back by the words that it records until the
//! next claim. Threads that share all their memory run out of credit. Such a thread leaves all
//! regions without an owner for a few buffers. Each time that claims prove useless again, it does
//! so for four times as many. That lasts until it ends a buffer with nearly all of the credit paid
//! back.

use crate::arch::WORD_TICKS;

/// Value of a region's word if no thread owns the region.
pub(crate) const NOBODY: u32 = 0;
/// A value that no region's word ever has.
const NO_THREAD: u32 = u32::MAX;

/// State of one level of a thread.
#[derive(Debug)]
pub(crate) struct Claims {
    /// Owner of the regions that the thread leaves as they are: [`NOBODY`], or [`NO_THREAD`] while
    /// it claims all regions.
    pub(crate) left: u32,
    credit_ticks: u32,
    /// Position in the buffer of the last claim's event.
    position: u32,
    /// Buffers until the thread claims regions again (`wait`), and the number of the last time.
    wait: u8,
    last_wait: u8,
}

/// Factor from the claiming thread's own wait to the cost of a claim: the owner waits, too, until
/// it has noticed the claim. (A factor of 1 instead of 2 is no better for Node.)
const OWNERS_PART: u32 = 2;
/// Largest cost of a claim that is believed, in ticks (1.6 µs at 2.6 GHz). If a claim took longer,
/// the thread lost its processor in between.
const CLAIM_TICKS_MAX: u32 = 1 << 12;
/// Ticks that a thread may spend on claims before any events pay for them: some hundred claims. A
/// thread needs that many to see through the bursts in which Node's threads work.
const CREDIT_TICKS: u32 = 1 << 17;
/// Largest number of buffers for which a thread claims no region. With this, threads for which
/// claims are useless spend a hundredth of their time on claims.
const WAIT_MAX: u8 = 63;

impl Claims {
    pub(crate) const fn new() -> Self {
        Self { left: NO_THREAD, credit_ticks: CREDIT_TICKS, position: 0, wait: 0, last_wait: 0 }
    }

    /// Accounts for the claim of a region that took `took_ticks`, for an event that is to be
    /// written at `position` of the buffer.
    pub(crate) fn claimed(&mut self, position: u32, took_ticks: u64) {
        // Words that the last buffer held after its last claim are not counted.
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

    /// Notes that the thread begins its next buffer, after which it may claim regions again.
    pub(crate) fn next_buffer(&mut self) {
        if self.left != NOBODY {
            // Claims are useful again to a thread that pays nearly all back; to one that runs out
            // of credit slowly they are not.
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

    /// Counts the claims and events of a thread whose every event meets another thread's region,
    /// within a thousand buffers. `words` is the distance from event to event; `took_ticks` gives
    /// the cost of a claim by its number.
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
        // A claim during which the thread lost its processor, or the clock went back, does not
        // count against the others.
        let (made, events) = claims(8, |number| if number % 1_000 == 0 { u64::MAX } else { 50 });
        assert_eq!(made, events);
    }
}
