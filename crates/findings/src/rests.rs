//! Stacks that are too small for rows in the course: whose their sums are.
//!
//! A sum lies at a caller of its stacks. If all stacks that this caller leads to belong to one
//! function, so does the sum. Otherwise the caller is known, and not the function.

use std::collections::{HashMap, HashSet};

use heapr_query::Owner;
use heapr_trace::{CourseRest, CourseRow, ProcessIndex, StackIndex};

use crate::own_frames::OwnOf;
use crate::recording::Recording;
use crate::site::{Held, RestOwner};
use crate::sites::NO_SITE;

/// Marks in place of a site's number, while the stacks below a node are joined.
const NO_STACK: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

/// Everything that a caller's stacks of left out functions ever made, and whether it has others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LeftOut {
    bytes: u64,
    count: u64,
    has_others: bool,
}

impl LeftOut {
    /// Adds the stacks of a callee.
    fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.count = self.count.saturating_add(other.count);
        self.has_others |= other.has_others;
    }

    /// Part of the blocks that was made until a moment, if they are made evenly; all of them if
    /// there are no others. `share`: that of all work.
    fn until(self, share: f64) -> Self {
        if !self.has_others {
            return self;
        }
        let part = |all: u64| (all as f64 * share).ceil() as u64;
        Self { bytes: part(self.bytes), count: part(self.count), has_others: self.has_others }
    }

    /// Takes the most that these stacks may hold off a sum.
    fn take_off(self, row: &mut CourseRow) {
        row.live_bytes = row.live_bytes.saturating_sub(self.bytes);
        row.live_count = row.live_count.saturating_sub(self.count);
        row.total_count = row.total_count.saturating_sub(self.count);
    }
}

/// Joins the sites of the stacks below a node.
fn joined(one: u32, other: u32) -> u32 {
    match (one, other) {
        (NO_STACK, site) | (site, NO_STACK) => site,
        (one, other) if one == other => one,
        _ => SEVERAL,
    }
}

impl Recording<'_> {
    /// Finds the owners of the sums of small stacks. `site_of`: number of each stack's site.
    pub(crate) fn rest_owners(&self, site_of: &[u32], frames: &[OwnOf]) -> HashMap<StackIndex, RestOwner> {
        let rests = self.summary.course.moments.iter().flat_map(|moment| &moment.rests);
        let mut owners: HashMap<StackIndex, RestOwner> = HashMap::new();
        for rest in rests.filter(|rest| rest.row.stack != StackIndex::EMPTY) {
            owners.entry(rest.row.stack).or_insert(RestOwner::Several(Owner::Runtime));
        }
        if owners.is_empty() {
            return owners;
        }
        let below = self.sites_below(site_of);
        for (&stack, owner) in &mut owners {
            *owner = match below.get(stack.0 as usize).copied().unwrap_or(NO_STACK) {
                NO_STACK | SEVERAL => {
                    let own = frames.get(self.near(stack) as usize);
                    let owner = own.filter(|own| !own.is_loading && own.frame.is_some());
                    RestOwner::Several(owner.map_or(Owner::Runtime, |own| own.owner))
                }
                number => RestOwner::Site(number),
            };
        }
        owners
    }

    /// Takes sites that were left out off the sums of small stacks. `removed`: their numbers. A sum
    /// loses what their stacks have made until then, in the measure of the work. The growth of the
    /// rest is thus the other stacks' alone.
    pub(crate) fn leave_out_rests(&mut self, removed: &HashSet<u32>) {
        if removed.is_empty() || self.rest_owners.is_empty() {
            return;
        }
        let below = self.left_out_below(removed);
        let of = |stack: &StackIndex| below.get(stack.0 as usize).copied().unwrap_or_default();
        for (stack, owner) in &mut self.rest_owners {
            if of(stack).count > 0 && !of(stack).has_others {
                *owner = RestOwner::Several(Owner::Runtime);
            }
        }
        let whole = self.work_done.last().copied().unwrap_or(0).max(1) as f64;
        for (moment, &done) in self.summary.course.moments.iter_mut().zip(&self.work_done) {
            for rest in &mut moment.rests {
                of(&rest.row.stack).until(done as f64 / whole).take_off(&mut rest.row);
            }
        }
    }

    /// By node of the stack tree: the blocks of left out sites whose stacks lead through it.
    fn left_out_below(&self, removed: &HashSet<u32>) -> Vec<LeftOut> {
        let stacks = self.trace.stacks();
        let mut below = vec![LeftOut::default(); self.site_of.len()];
        self.for_each_total(|totals| {
            let number = totals.stack.0 as usize;
            let is_removed = self.site_of.get(number).is_some_and(|site| removed.contains(site));
            if let Some(known) = below.get_mut(number) {
                known.add(match is_removed {
                    true => LeftOut {
                        bytes: totals.amounts.total_bytes,
                        count: totals.amounts.total_count.saturating_add(totals.amounts.realloc_count),
                        has_others: false,
                    },
                    false => LeftOut { has_others: true, ..LeftOut::default() },
                });
            }
        });
        // Callers have smaller numbers than callees.
        for number in (1..below.len()).rev() {
            let parent = stacks.parent(StackIndex(number as u32)).0 as usize;
            if parent < number {
                let of_callee = below[number];
                below[parent].add(of_callee);
            }
        }
        below
    }

    /// By node of the stack tree: the site of all stacks that lead through it.
    fn sites_below(&self, site_of: &[u32]) -> Vec<u32> {
        let stacks = self.trace.stacks();
        let mut below = vec![NO_STACK; site_of.len()];
        self.for_each_total(|totals| {
            let number = totals.stack.0 as usize;
            let site = site_of.get(number).copied().unwrap_or(NO_SITE);
            if let Some(known) = below.get_mut(number) {
                *known = joined(*known, if site == NO_SITE { SEVERAL } else { site });
            }
        });
        // Callers have smaller numbers than callees.
        for number in (1..below.len()).rev() {
            let parent = stacks.parent(StackIndex(number as u32)).0 as usize;
            if parent < number {
                below[parent] = joined(below[parent], below[number]);
            }
        }
        below
    }

    /// Sums of small stacks at a moment.
    pub(crate) fn rests(&self, place: usize) -> impl Iterator<Item = &CourseRest> {
        let moment = self.summary.course.moments.get(place);
        moment
            .into_iter()
            .flat_map(|moment| moment.rests.iter().map(|rest| (moment.time_ns, rest)))
            .filter_map(|(time_ns, rest)| {
                let known = self.trace.processes().get(rest.process.0 as usize);
                let has_ended =
                    known.and_then(|process| process.end_ns).is_some_and(|end_ns| end_ns < time_ns);
                (!has_ended).then_some(rest)
            })
    }

    /// Amounts of a process's stacks at a moment, and the sums of small stacks at their callers.
    pub(crate) fn rows_and_rests(
        &self,
        place: usize,
        process: ProcessIndex,
    ) -> impl Iterator<Item = &CourseRow> {
        let rows = self.rows(place).filter(move |(of, _)| *of == process).map(|(_, row)| row);
        let rests = self.rests(place).filter(move |rest| rest.process == process).map(|rest| &rest.row);
        rows.chain(rests)
    }

    /// Amounts at a moment of the small stacks of a process that belong to no single site, below
    /// functions of the program and its libraries.
    pub(crate) fn of_several(&self, process: ProcessIndex, place: usize) -> Held {
        let mut sum = Held::default();
        let is_told = |rest: &&CourseRest| match self.rest_owners.get(&rest.row.stack) {
            Some(RestOwner::Several(owner)) => rest.process == process && *owner != Owner::Runtime,
            _ => false,
        };
        self.rests(place).filter(is_told).for_each(|rest| sum.add(&rest.row));
        sum
    }

    /// Live bytes by process and moment, if rows and rests have them all; `None` for files of
    /// earlier versions.
    pub(crate) fn all_live(&self) -> Option<Vec<Vec<u64>>> {
        let moments = &self.summary.course.moments;
        if !moments.iter().all(heapr_trace::CourseMoment::is_whole) {
            return None;
        }
        let mut lives = vec![vec![0_u64; moments.len()]; self.trace.processes().len()];
        for place in 0..moments.len() {
            let rests = self.rests(place).map(|rest| (rest.process, &rest.row));
            for (process, row) in self.rows(place).chain(rests) {
                if let Some(sum) = lives.get_mut(process.0 as usize).and_then(|lives| lives.get_mut(place)) {
                    *sum = sum.saturating_add(row.live_bytes);
                }
            }
        }
        Some(lives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_one_site_are_its_and_those_of_several_are_nobodys() {
        assert_eq!(joined(NO_STACK, 3), 3);
        assert_eq!(joined(3, 3), 3);
        assert_eq!(joined(3, 4), SEVERAL);
        assert_eq!(joined(SEVERAL, 3), SEVERAL);
        assert_eq!(joined(SEVERAL, NO_STACK), SEVERAL);
        assert_eq!(joined(NO_STACK, NO_STACK), NO_STACK);
    }

    #[test]
    fn a_sum_loses_all_that_left_out_stacks_ever_made_and_no_more() {
        let mut left_out = LeftOut { bytes: 100, count: 4, has_others: false };
        left_out.add(LeftOut { bytes: 20, count: 1, has_others: true });
        assert_eq!(left_out, LeftOut { bytes: 120, count: 5, has_others: true });
        let row = |live_bytes, live_count| CourseRow { live_bytes, live_count, ..CourseRow::default() };
        let mut mixed = row(1000, 50);
        left_out.take_off(&mut mixed);
        assert_eq!((mixed.live_bytes, mixed.live_count), (880, 45));
        let mut theirs = row(110, 5);
        left_out.take_off(&mut theirs);
        assert_eq!(theirs.live_bytes, 0, "a part of it must not be told");
        // Growth is theirs alone: the rest does not grow.
        let rest = |share: f64| {
            let mut row = row(1000 + (120.0 * share) as u64, 50);
            left_out.until(share).take_off(&mut row);
            row.live_bytes
        };
        assert_eq!([0.25, 0.5, 1.0].map(rest), [1000; 3]);
    }
}
