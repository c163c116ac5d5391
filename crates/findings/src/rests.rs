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
/// Mark of sites that suppressions match. Sums with stacks of them are left out, too.
const LEFT_OUT: u32 = u32::MAX - 2;

/// Joins the sites of the stacks below a node.
fn joined(one: u32, other: u32) -> u32 {
    match (one, other) {
        (NO_STACK, site) | (site, NO_STACK) => site,
        (LEFT_OUT, _) | (_, LEFT_OUT) => LEFT_OUT,
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
        let below = self.sites_below(site_of, &HashSet::new());
        for (&stack, owner) in &mut owners {
            *owner = match below.get(stack.0 as usize).copied().unwrap_or(NO_STACK) {
                NO_STACK | SEVERAL | LEFT_OUT => {
                    let own = frames.get(self.near(stack) as usize);
                    let owner = own.filter(|own| !own.is_loading && own.frame.is_some());
                    RestOwner::Several(owner.map_or(Owner::Runtime, |own| own.owner))
                }
                number => RestOwner::Site(number),
            };
        }
        owners
    }

    /// Leaves out the sums that have stacks of sites that were left out. `removed`: their
    /// numbers.
    pub(crate) fn leave_out_rests(&mut self, removed: &HashSet<u32>) {
        if removed.is_empty() || self.rest_owners.is_empty() {
            return;
        }
        let below = self.sites_below(&self.site_of, removed);
        for (stack, owner) in &mut self.rest_owners {
            if below.get(stack.0 as usize) == Some(&LEFT_OUT) {
                *owner = RestOwner::Several(Owner::Runtime);
            }
        }
    }

    /// By node of the stack tree: the site of all stacks that lead through it. `removed`: numbers
    /// of sites that were left out.
    fn sites_below(&self, site_of: &[u32], removed: &HashSet<u32>) -> Vec<u32> {
        let stacks = self.trace.stacks();
        let mut below = vec![NO_STACK; site_of.len()];
        self.for_each_total(|totals| {
            let number = totals.stack.0 as usize;
            let site = site_of.get(number).copied().unwrap_or(NO_SITE);
            if let Some(known) = below.get_mut(number) {
                let site = match site {
                    NO_SITE => SEVERAL,
                    site if removed.contains(&site) => LEFT_OUT,
                    site => site,
                };
                *known = joined(*known, site);
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
        assert_eq!(joined(NO_STACK, LEFT_OUT), LEFT_OUT);
        assert_eq!(joined(LEFT_OUT, LEFT_OUT), LEFT_OUT);
        assert_eq!(joined(3, LEFT_OUT), LEFT_OUT, "a part of it must not be told");
    }
}
