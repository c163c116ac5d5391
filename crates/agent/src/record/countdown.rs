//! The countdown to a thread's next sample: a number of bytes that is drawn anew for each sample.
//! Samples lie like the points of a Poisson process on all requested bytes.
//!
//! If the loader has loaded the agent, the countdown lies in thread-local storage after the
//! thread's slot, for the assembly that counts it down. An agent that was injected into a process
//! has only the slot there, and its countdown lies in the thread's state.

use core::sync::atomic::Ordering::Relaxed;

use heapr_wire::{SAMPLE_ALL, SAMPLE_NOTHING};

use crate::arch::thread_pointer;
use crate::state::AGENT;

/// Bytes after which a thread that takes no samples checks whether it should.
const LOOK_AGAIN_BYTES: i64 = 16 << 20;
/// Largest distance that is drawn, in bytes, however large the mean is.
const DRAW_BYTES_MAX: u128 = 1 << 61;

/// A thread's state for sampling.
#[repr(C)]
pub(crate) struct Countdown {
    /// Bytes left of the countdown, in an injected agent.
    pub(crate) left_bytes: i64,
    /// Mean, in bytes, with which the countdown was drawn; 0: not drawn yet.
    mean_bytes: u64,
    /// State of the generator of random numbers; 0: not seeded yet.
    state: u64,
}

/// Result of [`crossed`] for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draw {
    /// The call is not recorded.
    Passed,
    /// The call is a sample, drawn with this mean.
    Sample(u64),
}

/// Returns the location of the calling thread's countdown.
#[inline(always)]
fn place(countdown: &mut Countdown) -> *mut i64 {
    if AGENT.is_injected.load(Relaxed) == 0 {
        thread_pointer::countdown().cast()
    } else {
        &raw mut countdown.left_bytes
    }
}

/// Counts a call for `size` bytes. `false`: no sample. `true`: call [`crossed`] for the result.
#[inline(always)]
pub(crate) fn count(countdown: &mut Countdown, size: usize) -> bool {
    let place = place(countdown);
    // SAFETY: the calling thread's own word; a signal handler that changes it in between runs on
    // this thread, too.
    unsafe {
        *place = (*place).wrapping_sub(size as i64).wrapping_sub(1);
        *place < 0
    }
}

/// True if a countdown has fallen below 0, or was never begun. If false, the call that checks this
/// was not counted yet.
#[cold]
pub(crate) fn is_over(countdown: &mut Countdown) -> bool {
    // SAFETY: as in `count`.
    countdown.mean_bytes == 0 || unsafe { *place(countdown) < 0 }
}

/// Decides whether the call for `size` bytes, with which a countdown fell below 0 or which found it
/// not begun, is a sample. `mean_bytes` is the mean that the session wants at this moment.
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
    // The thread's first call: the first distance begins with it.
    if count(countdown, size) {
        let next = countdown.draw(thread_id, mean_bytes);
        // SAFETY: as in `count`.
        unsafe { *place = next };
        return Draw::Sample(mean_bytes);
    }
    Draw::Passed
}

/// Makes the next call draw anew: the rest of the countdown belongs to another process.
pub(crate) fn begin_anew(countdown: &mut Countdown) {
    let place = place(countdown);
    *countdown = Countdown { left_bytes: 0, mean_bytes: 0, state: 0 };
    // SAFETY: as in `count`.
    unsafe { *place = 0 };
}

impl Countdown {
    /// Begins a thread's countdown; its first call draws the distance.
    pub(crate) fn begin(&mut self) {
        (self.left_bytes, self.mean_bytes) = (0, 0);
    }

    /// Draws the number of bytes to the next sample.
    fn draw(&mut self, thread_id: u32, mean_bytes: u64) -> i64 {
        match mean_bytes {
            SAMPLE_NOTHING => return LOOK_AGAIN_BYTES,
            // The distance is drawn when sampling begins again.
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

/// Returns the next state of a generator (SplitMix64), and its number.
fn next_random(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state, number ^ number >> 31)
}

/// Returns a distance of exponential distribution, cut to whole bytes: less than n with probability
/// 1 - exp(-n / mean).
fn distance(number: u64, mean_bytes: u64) -> i64 {
    let product = u128::from(negative_logarithm(number)) * u128::from(mean_bytes);
    (product >> FRACTION_BITS).min(DRAW_BYTES_MAX) as i64
}

/// Fraction bits of the fixed-point numbers in this module.
///
/// The arithmetic uses whole numbers only: floating-point flags and traps belong to the program.
const FRACTION_BITS: u32 = 56;

/// Returns -ln(u), where u = (2 [number / 2] + 1) / 2^64 is uniform between 0 and 1. The result is
/// at most 45, and right to 15 digits after the point.
fn negative_logarithm(number: u64) -> u64 {
    /// ln 2, with 64 fraction bits.
    const LN_2: u128 = 0xb172_17f7_d1cf_79ac;
    let odd = number | 1;
    let zeros = odd.leading_zeros();
    // A number from 1 to 2, with 63 fraction bits.
    let mut fraction = odd << zeros;
    // Each squaring gives one more digit of the logarithm to base 2.
    let mut logarithm = 0_u64;
    for _ in 0..FRACTION_BITS {
        let square = u128::from(fraction) * u128::from(fraction);
        let is_two = (square >> 127) as u64;
        fraction = (square >> 63 >> is_two) as u64;
        logarithm = logarithm << 1 | is_two;
    }
    let binary = (u64::from(zeros).wrapping_add(1) << FRACTION_BITS).wrapping_sub(logarithm);
    ((u128::from(binary) * LN_2) >> 64) as u64
}

/// Returns the bytes that a sample of `size` stands for: `size` / (1 - exp(-(`size` + 1) /
/// `mean_bytes`)).
#[cold]
pub(crate) fn weighted_bytes(size: usize, mean_bytes: u64) -> usize {
    /// Least ratio of size and mean at which a block is certainly a sample, to 17 digits.
    const RATIO_CERTAIN: u64 = 40;
    let asked = (size as u64).saturating_add(1);
    if mean_bytes == 0 || asked / mean_bytes >= RATIO_CERTAIN {
        return size;
    }
    let ratio = quotient(u128::from(asked) << FRACTION_BITS, u128::from(mean_bytes)) as u64;
    let bytes = if ratio >= RATIO_SMALL {
        quotient((size as u128) << FRACTION_BITS, u128::from(ONE.wrapping_sub(power_of_e(ratio))))
    } else {
        // size / chance = (size mean / (size + 1)) / (chance / ratio), because the chance itself
        // has few digits. (In sixteenths; a product of two such numbers has room for that.)
        let spread = quotient((size as u128 * u128::from(mean_bytes)) << 4, u128::from(asked));
        quotient(spread << (FRACTION_BITS - 4), u128::from(series(ratio, 2)))
    };
    bytes.min(usize::MAX as u128) as usize
}

/// The fixed-point number 1.
const ONE: u64 = 1 << FRACTION_BITS;
/// Ratio below which four terms of a series are exact to 10 digits.
const RATIO_SMALL: u64 = ONE >> 7;

fn times(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> FRACTION_BITS) as u64
}

/// Returns 1 - x / n (1 - x / (n + 1) (1 - ...)) for a small x. That is exp(-x) for n = 1, and (1 -
/// exp(-x)) / x for n = 2.
fn series(x: u64, first: u64) -> u64 {
    (first..first.wrapping_add(4))
        .rev()
        .fold(ONE, |sum, divisor| ONE.wrapping_sub(times(x, sum).checked_div(divisor).unwrap_or(0)))
}

/// Returns exp(-x).
fn power_of_e(x: u64) -> u64 {
    /// Number of halvings after which the series is exact to 14 digits.
    const HALVINGS: u32 = 12;
    let mut power = series(x >> HALVINGS, 1);
    for _ in 0..HALVINGS {
        power = times(power, power);
    }
    power
}

/// Returns `dividend` / `divisor`, computed bit by bit: the processor has no division of such
/// numbers, and the compiler's may panic. Returns 0 for a divisor of 0, and for one above 2^127.
fn quotient(dividend: u128, divisor: u128) -> u128 {
    let (mut quotient, mut rest) = (0_u128, 0_u128);
    if divisor == 0 || divisor >> 127 != 0 {
        return 0;
    }
    for bit in (0..u128::BITS).rev() {
        rest = rest << 1 | dividend >> bit & 1;
        quotient <<= 1;
        if rest >= divisor {
            rest = rest.wrapping_sub(divisor);
            quotient |= 1;
        }
    }
    quotient
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_floating_point() {
        let mut state = 7;
        for step in 0..100_000_u64 {
            let (next, number) = next_random(state);
            state = next;
            // Numbers of all magnitudes.
            let number = number >> (step % 64);
            let expected = -((number | 1) as f64 / 2_f64.powi(64)).ln();
            let found = negative_logarithm(number) as f64 / (1_u64 << FRACTION_BITS) as f64;
            assert!((found - expected).abs() < 1e-14 * expected.max(1.0), "{number}: {found} for {expected}");
        }
        assert_eq!(negative_logarithm(u64::MAX), 0);
    }

    #[test]
    fn quotients_are_those_of_the_compiler() {
        let mut state = 3;
        for step in 0..100_000_u32 {
            let mut next = || {
                let (next, number) = next_random(state);
                state = next;
                number
            };
            let dividend = (u128::from(next()) << 64 | u128::from(next())) >> (step % 128);
            let divisor = (u128::from(next()) << 63 | u128::from(next())) >> (step % 127) | 1;
            let divisor = divisor & ((1 << 127) - 1);
            assert_eq!(quotient(dividend, divisor), dividend / divisor, "{dividend} / {divisor}");
        }
        assert_eq!((quotient(1, 0), quotient(u128::MAX, 1)), (0, u128::MAX));
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
        // The greatest difference of the two distributions (Kolmogorov–Smirnov) is below 1.63 /
        // sqrt(n) in 99 of 100 series. The seed is fixed, so the series is always the same.
        let worst = [1_i64, 10, 100, 500, 1000, 2000, 5000].map(|limit| {
            let below = distances.partition_point(|&distance| distance < limit) as f64 / COUNT as f64;
            (below - (1.0 - (-(limit as f64) / MEAN as f64).exp())).abs()
        });
        assert!(worst.iter().all(|&off| off < 1.63 / (COUNT as f64).sqrt()), "{worst:?}");
    }

    #[test]
    fn weights_are_those_of_the_recorder() {
        let sizes = [0_usize, 1, 16, 1000, 4095, 4096, 100_000, 512 << 10, 4 << 20, 1 << 40];
        let means = [1_u64 << 10, 4099, 512 << 10, 1 << 40];
        for (size, mean) in sizes.into_iter().flat_map(|size| means.map(|mean| (size, mean))) {
            let chance = -(-(size as f64 + 1.0) / mean as f64).exp_m1();
            let expected = size as f64 / chance;
            let found = weighted_bytes(size, mean) as f64;
            assert!(
                (found - expected).abs() <= 1.0 + expected * 1e-9,
                "{size} by {mean}: {found} for {expected}"
            );
        }
        let _ = (weighted_bytes(usize::MAX, u64::MAX), weighted_bytes(usize::MAX, 1), weighted_bytes(1, 0));
    }

    #[test]
    fn the_rarest_draw_and_the_largest_mean_are_numbers() {
        assert!(distance(0, u64::MAX / 2) > 0);
        assert_eq!(distance(u64::MAX, 512 << 10), 0);
    }
}
