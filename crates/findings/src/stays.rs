//! Memory that stays while other memory of the same function comes and goes.
//!
//! The time of work is cut into seven to twelve windows. The least that a stack holds in a window
//! is what it keeps there. A function's part is the sum over those of its stacks that keep more and
//! more. So the temporary blocks of one stack do not hide the blocks that another one keeps.

use std::collections::HashMap;

use heapr_query::Trend;
use heapr_trace::{CourseRow, ProcessIndex, StackIndex};

use crate::recording::Recording;
use crate::site::{Held, Site};
use crate::sites::NO_SITE;
use crate::work_time::WorkTime;

/// Largest number of windows in which a process's work is judged.
const WINDOWS: usize = 12;
/// Smallest number of moments in a window: of fewer, the least says no more than the amounts.
const WINDOW_MIN: usize = 2;
/// Largest probability of the order of a stack's least amounts, if it kept nothing.
const CHANCE_MAX: f64 = 0.01;

/// Rules of growth: true if a site passes them, by the times and the work of its amounts.
pub(crate) type PassesRules = fn(&[u64], &[u64], &Site, &WorkTime) -> bool;

/// Least amounts of the sites of a process, by window.
#[derive(Debug)]
pub(crate) struct Stays {
    /// Last moment of each window.
    pub(crate) ends: Vec<usize>,
    pub(crate) times_ns: Vec<u64>,
    pub(crate) work_done: Vec<u64>,
    /// By window: the least that the process holds.
    pub(crate) work: WorkTime,
    /// By number of a site: the part that stays.
    parts: HashMap<u32, Part>,
    /// By number of a site: the part of it whose stacks grow evenly, each by itself.
    even_parts: HashMap<u32, Part>,
}

/// Part of a site that stays.
#[derive(Debug)]
struct Part {
    /// The least that its growing stacks hold, by window.
    held: Vec<Held>,
    /// The stack that grows most, and by how much.
    stack: StackIndex,
    growth_bytes: u64,
}

impl Stays {
    /// `None` if the process has too few moments. `passes`: the rules of growth.
    pub(crate) fn of(recording: &Recording<'_>, process: ProcessIndex, passes: PassesRules) -> Option<Self> {
        let of_process = &recording.processes[process.0 as usize];
        let (first, end) = (of_process.first, of_process.end);
        let length = end.saturating_sub(first).div_ceil(WINDOWS);
        if length < WINDOW_MIN {
            return None;
        }
        // The last window ends with the work, and the first one may be shorter.
        let mut ends: Vec<usize> = (first..end).rev().step_by(length).collect();
        ends.reverse();
        let window_of = |place: usize| ends.partition_point(|&end| end < place);
        let site_of = |stack: StackIndex| recording.site_of.get(stack.0 as usize).copied();
        let has_site = |row: &CourseRow| site_of(row.stack).is_some_and(|number| number != NO_SITE);
        let mut least: HashMap<StackIndex, Vec<Least>> = HashMap::new();
        for place in first..end {
            let window = window_of(place);
            for (_, row) in recording.rows(place).filter(|(of, row)| *of == process && has_site(row)) {
                let windows = least.entry(row.stack).or_insert_with(|| vec![Least::default(); ends.len()]);
                let held =
                    Held { bytes: row.live_bytes, count: row.live_count, made: 0, variances: row.variances };
                windows[window].add(held);
            }
        }
        let lengths: Vec<usize> = (0..ends.len())
            .map(|window| ends[window] + 1 - if window == 0 { first } else { ends[window - 1] + 1 })
            .collect();
        let times_ns: Vec<u64> = ends.iter().map(|&end| recording.times_ns[end]).collect();
        let work_done: Vec<u64> = ends.iter().map(|&end| recording.work_done[end]).collect();
        let (mut parts, mut even_parts) = (HashMap::new(), HashMap::new());
        for (&stack, windows) in &mut least {
            windows.iter_mut().zip(&lengths).for_each(|(least, &length)| least.end(length));
            let Some(growth_bytes) = growth(&times_ns, windows) else { continue };
            let Some(number) = site_of(stack) else { continue };
            add(&mut parts, number, (stack, growth_bytes), windows);
            if recording
                .sites
                .first()
                .is_some_and(|site| is_even(passes, (&times_ns, &work_done), site, windows))
            {
                add(&mut even_parts, number, (stack, growth_bytes), windows);
            }
        }
        let live = |window: usize| {
            let from = ends[window] + 1 - lengths[window] - first;
            of_process.live_bytes.get(from..from + lengths[window])?.iter().copied().min()
        };
        let work = WorkTime {
            end: ends.len(),
            live_bytes: (0..ends.len()).filter_map(live).collect(),
            end_ns: of_process.end_ns,
            still: of_process.still,
            ..WorkTime::default()
        };
        Some(Self { times_ns, work_done, work, parts, even_parts, ends })
    }

    /// Site with the part that stays in place of the amounts by moment. Its stack is the one that
    /// grows most.
    pub(crate) fn site(&self, site: &Site) -> Option<Site> {
        Some(self.with(self.parts.get(&site.number)?, site))
    }

    /// Variant of [`Stays::site`] with the stacks alone that grow evenly.
    pub(crate) fn even(&self, site: &Site) -> Option<Site> {
        Some(self.with(self.even_parts.get(&site.number)?, site))
    }

    fn with(&self, part: &Part, site: &Site) -> Site {
        let mut held = part.held.clone();
        for (held, &end) in held.iter_mut().zip(&self.ends) {
            held.made = site.held[end].made;
        }
        Site { held, stack: part.stack, ..site.clone() }
    }
}

/// Adds a stack to the part of its site.
fn add(
    parts: &mut HashMap<u32, Part>,
    number: u32,
    (stack, growth_bytes): (StackIndex, u64),
    windows: &[Least],
) {
    let held = vec![Held::default(); windows.len()];
    let part = parts.entry(number).or_insert_with(|| Part { held, stack, growth_bytes });
    if (growth_bytes, stack) > (part.growth_bytes, part.stack) {
        (part.growth_bytes, part.stack) = (growth_bytes, stack);
    }
    for (sum, least) in part.held.iter_mut().zip(windows) {
        *sum += least.held;
    }
}

/// True if the least amounts of one stack pass the rules of growth. Of the site only the form is
/// used.
fn is_even(
    passes: PassesRules,
    (times_ns, work_done): (&[u64], &[u64]),
    site: &Site,
    windows: &[Least],
) -> bool {
    let held: Vec<Held> = windows.iter().map(|least| least.held).collect();
    let work = WorkTime {
        end: windows.len(),
        live_bytes: held.iter().map(|held| held.bytes).collect(),
        ..WorkTime::default()
    };
    passes(times_ns, work_done, &Site { held, ..site.clone() }, &work)
}

/// Growth of a stack's least amounts; `None` if they do not rise.
fn growth(times_ns: &[u64], windows: &[Least]) -> Option<u64> {
    let points: Vec<(u64, u64)> =
        times_ns.iter().zip(windows).map(|(&time_ns, least)| (time_ns, least.held.bytes)).collect();
    let growth =
        windows.last()?.held.bytes.checked_sub(windows.first()?.held.bytes).filter(|&growth| growth > 0)?;
    (Trend::of(&points)?.chance <= CHANCE_MAX).then_some(growth)
}

/// Least amounts of a stack in a window.
#[derive(Debug, Clone, Copy, Default)]
struct Least {
    /// Number of moments in which the stack held anything.
    seen: usize,
    held: Held,
}

impl Least {
    fn add(&mut self, held: Held) {
        if self.seen == 0 || held.bytes < self.held.bytes {
            self.held = held;
        }
        self.seen += 1;
    }

    /// Ends a window: a stack that held nothing at a moment of it kept nothing.
    fn end(&mut self, length: usize) {
        if self.seen < length {
            self.held = Held::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grows(bytes: impl Fn(u64) -> u64) -> bool {
        let times_ns: Vec<u64> = (0..12).collect();
        let windows: Vec<Least> = (0..12)
            .map(|window| {
                let mut least = Least::default();
                (0..4).for_each(|place| {
                    least.add(Held { bytes: bytes(window * 4 + place), count: 1, ..Held::default() })
                });
                least.end(4);
                least
            })
            .collect();
        growth(&times_ns, &windows).is_some()
    }

    #[test]
    fn what_stays_beside_temporaries_grows_and_temporaries_do_not() {
        let temporary = |at: u64| at * 7919 % 13 * 1000;
        assert!(grows(|at| at * 1000 + temporary(at)));
        assert!(!grows(temporary));
        assert!(!grows(|at| 500 + temporary(at)));
        assert!(!grows(|at| if at > 40 { 9000 } else { temporary(at) }), "more at the end alone");
    }

    #[test]
    fn a_stack_that_holds_nothing_for_a_moment_keeps_nothing() {
        let mut least = Least::default();
        least.add(Held { bytes: 5, count: 1, ..Held::default() });
        least.end(2);
        assert_eq!((least.held.bytes, least.held.count), (0, 0));
    }
}
