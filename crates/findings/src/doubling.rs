//! Containers that double: they hold the same for longer and longer, and then twice as much.
//!
//! Such growth has few steps, and most of it is in the last one. It is told by the works between
//! the steps, which grow like the container. A container of twice the size is full after twice the
//! work.

use crate::site::Held;
use crate::work_time::{GROWTH_MIN_BYTES, WorkTime};

/// Smallest and largest ratio of the amounts after and before a step. Early steps may follow one
/// another between two moments, so that only the last two have a largest ratio.
const RATIO_MIN: f64 = 1.35;
const RATIO_MAX: f64 = 2.7;
/// Smallest number of steps.
const STEPS_MIN: usize = 3;
/// Smallest share of the growth that is in the steps, and largest fall as a share of the most.
const IN_STEPS_MIN: f64 = 0.9;
const FALL_MAX: f64 = 0.1;
/// Smallest and largest ratio of the works until the last two steps.
const WORK_RATIO_MIN: f64 = 1.25;
const WORK_RATIO_MAX: f64 = 4.0;
/// Largest delay of the next step: in parts of the work after which it is expected.
const OVERDUE: f64 = 1.3;

/// Steps of a container that doubles.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Doubling {
    /// Moments after each step.
    pub(crate) steps: Vec<usize>,
}

/// Finds the steps of a site that doubles and has not stopped. `work_done` is by moment.
pub(crate) fn doubling(work_done: &[u64], held: &[Held], work: &WorkTime) -> Option<Doubling> {
    let held = held.get(..work.end)?;
    let last = held.last()?.bytes;
    let (mut steps, mut in_steps, mut most) = (Vec::new(), 0_u64, 0_u64);
    let mut before_first = None;
    for place in (work.first + 1).max(1)..work.end {
        let (before, after) = (held[place - 1].bytes, held[place].bytes);
        most = most.max(after);
        if ((most - after) as f64) > most as f64 * FALL_MAX {
            return None;
        }
        if before > 0 && after as f64 >= before as f64 * RATIO_MIN {
            before_first.get_or_insert(before);
            in_steps = in_steps.saturating_add(after - before);
            steps.push(place);
        }
    }
    let growth = last.checked_sub(before_first?)?;
    let is_large = growth >= 4 * GROWTH_MIN_BYTES && growth as f64 >= work.last_bytes() as f64 * 0.05;
    if steps.len() < STEPS_MIN || !is_large || (in_steps as f64) < growth as f64 * IN_STEPS_MIN {
        return None;
    }
    let &[.., before, latest] = &steps[..] else { return None };
    let ratio = |place: usize| held[place].bytes as f64 / held[place - 1].bytes as f64;
    if ratio(before).max(ratio(latest)) > RATIO_MAX {
        return None;
    }
    // A step lies between two moments: its work is known within one step of them.
    let begun = work_done[work.first];
    let done = |place: usize| work_done[place].saturating_sub(begun) as f64;
    let middle = |place: usize| f64::midpoint(done(place - 1), done(place));
    let (earlier, later) = (middle(before), middle(latest));
    let by_work = later / earlier.max(1.0);
    let expected = later * ratio(latest).max(by_work);
    let is_due = done(work.end - 1) <= expected * OVERDUE;
    let is_geometric = (WORK_RATIO_MIN..=WORK_RATIO_MAX).contains(&by_work);
    (is_due && is_geometric).then_some(Doubling { steps })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::{even_work, site, work};

    fn doubles(kib: impl Fn(u64) -> u64) -> Option<usize> {
        let kib: Vec<u64> = (0..60).map(kib).collect();
        doubling(&even_work(60), &site(&kib).held, &work(&kib)).map(|doubling| doubling.steps.len())
    }

    #[test]
    fn a_container_that_is_filled_all_the_time_doubles() {
        assert_eq!(doubles(|at| (at + 1).next_power_of_two() * 64), Some(6));
        assert_eq!(doubles(|at| if at < 50 { (at + 1).next_power_of_two() * 64 } else { 4096 }), Some(6));
        // One that began with elements.
        assert!(doubles(|at| (at + 5).next_power_of_two() * 64).is_some());
    }

    #[test]
    fn what_has_stopped_is_filled_once_or_grows_evenly_does_not_double() {
        assert_eq!(doubles(|at| (at.min(12) + 1).next_power_of_two() * 64), None, "it is full since long");
        assert_eq!(doubles(|at| at * 50), None, "even growth");
        assert_eq!(doubles(|at| if at < 30 { 100 } else { 900 }), None, "one step");
        assert_eq!(doubles(|at| 64 << (at % 8)), None, "batches");
        assert_eq!(doubles(|at| 64 << (at / 20)), None, "two steps");
        assert_eq!(doubles(|_| 64), None, "nothing happens");
        assert_eq!(doubles(|at| if at > 56 { 64 << (at - 56) } else { 64 }), None, "a burst at the end");
    }
}
