//! When a thread takes its next sample: after so many bytes, drawn anew each time, so that samples
//! lie like the points of a Poisson process on all that is asked for.
//!
//! Where the loader has loaded the agent the countdown lies in thread-local storage behind the
//! thread's slot, for the assembly that counts it down; an agent that was put into a process has
//! only that one word, and keeps it in the thread's state.

use core::sync::atomic::Ordering::Relaxed;

use heapr_wire::{SAMPLE_ALL, SAMPLE_NOTHING};

use crate::state::AGENT;
use crate::x86_64::thread_pointer;

/// Bytes after which a thread that takes no samples looks whether it should.
const LOOK_AGAIN_BYTES: i64 = 16 << 20;
/// No draw is further: a mean may be as large as it likes.
const DRAW_BYTES_MAX: f64 = (1_u64 << 61) as f64;

/// What a thread keeps of its countdown.
#[repr(C)]
pub(crate) struct Countdown {
    /// Bytes left, in an injected agent.
    pub(crate) left_bytes: i64,
    /// By which mean it was drawn; 0: not yet.
    mean_bytes: u64,
    /// Of the generator of random numbers; 0: not yet.
    state: u64,
}

/// What a call that was counted down turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draw {
    /// Nothing to be recorded.
    Passed,
    /// A sample, by this mean.
    Sample(u64),
}

/// Where the calling thread's countdown is.
#[inline(always)]
fn place(countdown: &mut Countdown) -> *mut i64 {
    if AGENT.is_injected.load(Relaxed) == 0 {
        thread_pointer::countdown().cast()
    } else {
        &raw mut countdown.left_bytes
    }
}

/// Counts a call for `size` bytes; `false`: no sample. `true`: ask [`crossed`].
#[inline(always)]
pub(crate) fn count(countdown: &mut Countdown, size: usize) -> bool {
    let place = place(countdown);
    // SAFETY: the calling thread's own word; a signal handler that changes it meanwhile is this
    // thread, too.
    unsafe {
        *place = (*place).wrapping_sub(size as i64).wrapping_sub(1);
        *place < 0
    }
}

/// Whether a countdown has come below 0, or never was begun. If not, a call that asks was not
/// counted yet.
#[cold]
pub(crate) fn is_over(countdown: &mut Countdown) -> bool {
    // SAFETY: as in `count`.
    countdown.mean_bytes == 0 || unsafe { *place(countdown) < 0 }
}

/// A countdown has come below 0 with a call for `size` bytes, or never was begun: what the call is.
/// `mean_bytes`: the mean that is wanted now.
#[cold]
pub(crate) fn crossed(countdown: &mut Countdown, thread_id: u32, size: usize, mean_bytes: u64) -> Draw {
    let place = place(countdown);
    let drawn_by = countdown.mean_bytes;
    let next = countdown.draw(thread_id, mean_bytes);
    countdown.mean_bytes = mean_bytes;
    // SAFETY: as in `count`.
    unsafe { *place = next };
    if mean_bytes == SAMPLE_NOTHING {
        return Draw::Passed;
    }
    if ![0, SAMPLE_NOTHING].contains(&drawn_by) {
        return Draw::Sample(drawn_by);
    }
    // A thread's first call: the first distance begins with it.
    if count(countdown, size) {
        let next = countdown.draw(thread_id, mean_bytes);
        // SAFETY: as in `count`.
        unsafe { *place = next };
        return Draw::Sample(mean_bytes);
    }
    Draw::Passed
}

/// The next call draws anew: what was left is another process's.
pub(crate) fn begin_anew(countdown: &mut Countdown) {
    let place = place(countdown);
    *countdown = Countdown { left_bytes: 0, mean_bytes: 0, state: 0 };
    // SAFETY: as in `count`.
    unsafe { *place = 0 };
}

impl Countdown {
    /// A thread's: it is drawn with its first call.
    pub(crate) fn begin(&mut self) {
        (self.left_bytes, self.mean_bytes) = (0, 0);
    }

    /// Bytes to the next sample.
    fn draw(&mut self, thread_id: u32, mean_bytes: u64) -> i64 {
        match mean_bytes {
            SAMPLE_NOTHING => return LOOK_AGAIN_BYTES,
            // It is drawn when there are samples again.
            SAMPLE_ALL => return 0,
            _ => {}
        }
        if self.state == 0 {
            let own = core::ptr::from_ref(self) as usize as u64;
            let now_ticks = AGENT.clock.now_ticks(0);
            self.state = now_ticks ^ own.rotate_left(32) ^ u64::from(thread_id) << 40 | 1;
        }
        let (state, number) = next_random(self.state);
        self.state = state;
        distance(number, mean_bytes)
    }
}

/// The next state of a generator (SplitMix64), and its number.
fn next_random(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state, number ^ number >> 31)
}

/// A distance of exponential distribution, cut to whole bytes: less than n with probability
/// 1 - exp(-n / mean).
fn distance(number: u64, mean_bytes: u64) -> i64 {
    let uniform = ((number >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let distance = -natural_logarithm(uniform) * mean_bytes as f64;
    (if distance < DRAW_BYTES_MAX { distance } else { DRAW_BYTES_MAX }) as i64
}

/// Of a number from 0 to 1; the C library's may not be called. Right to 13 digits.
fn natural_logarithm(number: f64) -> f64 {
    const EXPONENT_SHIFT: u32 = 52;
    const EXPONENT_OF_ONE: i64 = 1023;
    const MANTISSA: u64 = (1 << EXPONENT_SHIFT) - 1;
    let bits = number.to_bits();
    let mut exponent = (bits >> EXPONENT_SHIFT) as i64 - EXPONENT_OF_ONE;
    let mut fraction = f64::from_bits(bits & MANTISSA | (EXPONENT_OF_ONE as u64) << EXPONENT_SHIFT);
    if fraction > core::f64::consts::SQRT_2 {
        fraction /= 2.0;
        exponent = exponent.wrapping_add(1);
    }
    // ln f = 2 artanh((f - 1) / (f + 1)), whose argument is below 0.172 in amount.
    let argument = (fraction - 1.0) / (fraction + 1.0);
    let square = argument * argument;
    let mut sum = 0.0;
    for odd in [17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        sum = sum * square + 1.0 / odd;
    }
    2.0 * argument * sum + exponent as f64 * core::f64::consts::LN_2
}

/// Bytes that a sample of `size` stands for.
#[cold]
pub(crate) fn weighted_bytes(size: usize, mean_bytes: u64) -> usize {
    /// Halvings after which four terms of the series are exact to 12 digits.
    const HALVINGS: u32 = 10;
    let (size, mean) = (size as f64, mean_bytes as f64);
    let ratio = (size + 1.0) / mean;
    if ratio >= 50.0 {
        return size as usize;
    }
    // exp(-x) = exp(-x / 1024) ^ 1024.
    let part = -ratio / f64::from(1_u32 << HALVINGS);
    let mut power = 1.0 + part * (1.0 + part / 2.0 * (1.0 + part / 3.0 * (1.0 + part / 4.0)));
    for _ in 0..HALVINGS {
        power *= power;
    }
    let chance = 1.0 - power;
    if chance > 0.0 { (size / chance) as usize } else { size as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_c_library() {
        for step in 1..=100_000 {
            let number = f64::from(step) / 100_000.0;
            assert!((natural_logarithm(number) - number.ln()).abs() < 1e-12, "{number}");
        }
        let least = 0.5 / (1_u64 << 53) as f64;
        assert!((natural_logarithm(least) - least.ln()).abs() < 1e-12);
    }

    #[test]
    fn distances_have_the_distribution_that_weights_expect() {
        const MEAN: u64 = 1000;
        const COUNT: usize = 200_000;
        let mut state = 1;
        let mut distances: Vec<i64> = (0..COUNT)
            .map(|_| {
                let (next, number) = next_random(state);
                state = next;
                distance(number, MEAN)
            })
            .collect();
        distances.sort_unstable();
        // The greatest difference of the two distributions, as Kolmogorov and Smirnov have it:
        // below 1.63 / sqrt(n) in 99 of 100 series, and this one is always the same.
        let worst = [1_i64, 10, 100, 500, 1000, 2000, 5000].map(|limit| {
            let below = distances.partition_point(|&distance| distance < limit) as f64 / COUNT as f64;
            (below - (1.0 - (-(limit as f64) / MEAN as f64).exp())).abs()
        });
        assert!(worst.iter().all(|&off| off < 1.63 / (COUNT as f64).sqrt()), "{worst:?}");
    }

    #[test]
    fn weights_are_those_of_the_recorder() {
        for size in [0_usize, 1, 16, 1000, 100_000, 512 << 10, 4 << 20, 1 << 40] {
            let mean = 512_u64 << 10;
            let chance = -(-(size as f64 + 1.0) / mean as f64).exp_m1();
            let expected = size as f64 / chance;
            let found = weighted_bytes(size, mean) as f64;
            assert!((found - expected).abs() <= 1.0 + expected * 1e-6, "{size}: {found} for {expected}");
        }
    }

    #[test]
    fn the_rarest_draw_and_the_largest_mean_are_numbers() {
        assert!(distance(0, u64::MAX / 2) > 0);
        assert_eq!(distance(u64::MAX, 512 << 10), 0);
    }
}
