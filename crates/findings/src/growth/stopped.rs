//! Growth that has stopped although the program works on: what one phase of the work has loaded.

use crate::site::Held;

/// Smallest share of the time of work without growth, and smallest number of its moments…
const QUIET_TIME_MIN: f64 = 0.1;
const QUIET_MOMENTS_MIN: usize = 4;
/// …smallest share of these moments at which the program has made blocks: else it may only wait…
const WORKING_MIN: f64 = 0.5;
/// …and smallest multiple of the longest pause before, as growth may come in steps.
const PAUSES_MIN: u64 = 2;

/// Time without growth at the end of the judged span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub(crate) quiet_ns: u64,
    /// Number of blocks that the program made meanwhile.
    pub(crate) made: u64,
}

/// Finds the time without growth. `held` and `times_ns` are by moment, and so are the numbers of
/// blocks `made` by the process; `first` is the first moment of its work.
pub(crate) fn stopped(
    (times_ns, made, held): (&[u64], &[u64], &[Held]),
    first: usize,
    (from, to): (usize, usize),
) -> Option<Stopped> {
    let bytes = |place: usize| held.get(place).map_or(0, |held| held.bytes);
    let (mut most, mut last_rise, mut longest_pause_ns) = (bytes(from), None, 0_u64);
    for place in from + 1..=to {
        if bytes(place) > most {
            let pause_ns = last_rise.map_or(0, |last: usize| times_ns[place].saturating_sub(times_ns[last]));
            (most, last_rise) = (bytes(place), Some(place));
            longest_pause_ns = longest_pause_ns.max(pause_ns);
        }
    }
    let last_rise = last_rise?;
    let quiet_ns = times_ns.get(to)?.saturating_sub(times_ns[last_rise]);
    let whole_ns = times_ns[to].saturating_sub(times_ns[first.min(from)]);
    let moments = to - last_rise;
    let working = made.get(last_rise..=to)?.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let is_long = quiet_ns as f64 >= whole_ns as f64 * QUIET_TIME_MIN
        && moments >= QUIET_MOMENTS_MIN
        && quiet_ns >= longest_pause_ns.saturating_mul(PAUSES_MIN);
    let works = working as f64 >= moments as f64 * WORKING_MIN;
    (is_long && works).then(|| Stopped { quiet_ns, made: made[to].saturating_sub(made[last_rise]) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::{STEP_NS, even_work, site, times_ns};

    /// Moments without growth, of a program that holds these amounts.
    fn quiet(kib: impl Fn(u64) -> u64, made: &[u64]) -> Option<u64> {
        let kib: Vec<u64> = (0..40).map(kib).collect();
        let found = stopped((&times_ns(40), made, &site(&kib).held), 0, (6, 39))?;
        assert_eq!(found.made, made[39] - made[39 - (found.quiet_ns / STEP_NS) as usize]);
        Some(found.quiet_ns / STEP_NS)
    }

    #[test]
    fn a_load_after_which_the_program_works_on_has_stopped() {
        let load = |at: u64| at.clamp(15, 30) * 100;
        // Most of the work is the load, and a little goes on behind it.
        let made: Vec<u64> = (0..40).map(|at: u64| at.min(30) * 10_000 + at).collect();
        assert_eq!(quiet(load, &made), Some(9));
        // A little of it is freed then.
        assert_eq!(quiet(|at| load(at) - u64::from(at > 30), &made), Some(9));
    }

    #[test]
    fn what_waits_pauses_or_goes_on_has_not_stopped() {
        let waits: Vec<u64> = (0..40).map(|at: u64| at.min(30) * 1000).collect();
        assert_eq!(quiet(|at| at.min(30) * 100, &waits), None, "no block is made");
        assert_eq!(quiet(|at| at * 100, &even_work(40)), None, "it goes on");
        assert_eq!(quiet(|at| at / 6 * 600, &even_work(40)), None, "it grows in steps");
        assert_eq!(quiet(|at| at.min(36) * 100, &even_work(40)), None, "the time is short");
        assert_eq!(quiet(|_| 700, &even_work(40)), None, "it never grew");
    }
}
