//! Even growth beside growth in steps: a table that doubles, and the elements that are made for it.
//!
//! The steps are too large for even growth, and the elements are too many for a container that
//! doubles. The elements tell that it goes on.

use heapr_query::Trend;

use super::{Growing, Manner, judge};
use crate::site::{Held, Site};
use crate::stays::Stays;

/// Smallest ratio of the amounts after and before a step, and smallest number of steps.
const RATIO_MIN: f64 = 1.35;
const STEPS_MIN: usize = 2;
/// Largest fall of all that the site holds, as a share of the growth.
const FALL_MAX: f64 = 0.1;

/// Judges whether stacks of a site grow evenly. All that the site holds is told if the rest of it
/// grows in steps, and else these stacks alone.
pub(super) fn beside_steps<'a>(times_ns: &[u64], stays: &Stays, site: &'a Site) -> Option<Growing<'a>> {
    let even = stays.even(site)?;
    let growing = judge(&stays.times_ns, &stays.work_done, &even, &stays.work)?;
    let span = (stays.ends[growing.from], stays.ends[growing.to]);
    let rising = stays.site(site)?;
    let rest: Vec<u64> =
        rising.held.iter().zip(&even.held).map(|(all, even)| all.bytes.saturating_sub(even.bytes)).collect();
    match steps(&rest[growing.from..=growing.to]) >= STEPS_MIN {
        true => of_whole(growing, times_ns, site, span),
        false => Some(growing.of_part(site, even.stack, span.0, span.1)),
    }
}

/// Number of times that an amount rises much from one window to the next.
fn steps(bytes: &[u64]) -> usize {
    let is_step = |pair: &&[u64]| pair[0] > 0 && pair[1] as f64 >= pair[0] as f64 * RATIO_MIN;
    bytes.windows(2).filter(is_step).count()
}

/// Growth of all that the site holds, between two moments; `None` if it falls.
fn of_whole<'a>(
    even: Growing<'_>,
    times_ns: &[u64],
    site: &'a Site,
    (from, to): (usize, usize),
) -> Option<Growing<'a>> {
    let held = &site.held[from..=to];
    let (first, last) = (*held.first()?, *held.last()?);
    let growth_bytes = last.bytes.checked_sub(first.bytes).filter(|&bytes| bytes > 0)?;
    let fall = |pair: &[Held]| pair[0].bytes.saturating_sub(pair[1].bytes);
    let largest_fall = held.windows(2).map(fall).max().unwrap_or(0) as f64 / growth_bytes as f64;
    let points: Vec<(u64, u64)> =
        times_ns[from..=to].iter().copied().zip(held.iter().map(|held| held.bytes)).collect();
    let made = last.made.saturating_sub(first.made).max(1);
    let whole = Growing {
        site,
        growth_bytes,
        manner: Manner::Whole,
        stack: None,
        from,
        to,
        first,
        last,
        count: held.len(),
        trend: Trend::of(&points)?,
        largest_fall,
        late: even.late,
        kept: last.count.saturating_sub(first.count) as f64 / made as f64,
        begins_late: even.begins_late,
    };
    (largest_fall <= FALL_MAX).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::{even_work, site, times_ns, work};

    #[test]
    fn a_table_that_doubles_has_steps_and_one_load_is_no_such_table() {
        assert_eq!(steps(&[100, 100, 200, 200, 200, 400, 400]), 2);
        assert_eq!(steps(&[100, 100, 100, 3000, 3000]), 1);
        assert_eq!(steps(&[0, 100, 110, 120]), 0);
    }

    #[test]
    fn all_of_a_table_with_its_elements_grows_and_one_that_is_emptied_does_not() {
        let elements: Vec<u64> = (0..40).map(|at| at * 10).collect();
        let even = site(&elements);
        let whole = |table: fn(u64) -> u64| {
            let kib: Vec<u64> = (0..40).map(|at| at * 10 + table(at)).collect();
            let all = site(&kib);
            let growing = judge(&times_ns(40), &even_work(40), &even, &work(&elements)).expect("even growth");
            of_whole(growing, &times_ns(40), &all, (4, 39)).map(|growing| growing.growth_bytes >> 10)
        };
        assert_eq!(whole(|at| (at + 1).next_power_of_two() * 32), Some(350 + (64 - 8) * 32));
        assert_eq!(whole(|at| if at < 30 { 400 } else { 0 }), None);
    }
}
