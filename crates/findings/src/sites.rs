//! Making of the sites of a recording.

use std::collections::HashMap;

use heapr_query::Owner;
use heapr_query::engine::FrameId;
use heapr_table::SortRows as _;
use heapr_trace::{Amounts, ProcessIndex, StackIndex};

use crate::own_frames::own_frames;
use crate::recording::Recording;
use crate::site::{Held, RestOwner, Site};

/// Number in place of that of a site, for stacks without one.
pub(crate) const NO_SITE: u32 = u32::MAX;

/// Sites by process, function, and whether the function waits for loaded code.
type Numbers = HashMap<(ProcessIndex, Option<FrameId>, bool), u32>;

impl Recording<'_> {
    /// Groups the stacks that are worth a name by their own functions.
    pub(crate) fn add_sites(&mut self) {
        let stacks = (0..self.is_wanted.len() as u32).map(StackIndex);
        let wanted = stacks.filter_map(|stack| self.wanted_name(stack));
        let frames = own_frames(&self.tree, self.own, wanted);
        let mut numbers = Numbers::new();
        let mut sites: Vec<Site> = Vec::new();
        let mut site_of = vec![NO_SITE; self.is_wanted.len()];
        let moment_count = self.times_ns.len();
        let mut find = |sites: &mut Vec<Site>, stack: StackIndex| {
            let own = frames[self.wanted_name(stack)? as usize];
            let process = self.process_of(stack);
            let number = *numbers.entry((process, own.frame, own.is_loading)).or_insert_with(|| {
                sites.push(Site {
                    process,
                    owner: if own.is_loading { Owner::Runtime } else { own.owner },
                    is_loading: own.is_loading,
                    number: sites.len() as u32,
                    amounts: Amounts::default(),
                    stack,
                    weight: 0,
                    held: vec![Held::default(); moment_count],
                });
                sites.len() as u32 - 1
            });
            site_of[stack.0 as usize] = number;
            Some(number as usize)
        };
        self.for_each_total(|totals| {
            let Some(number) = find(&mut sites, totals.stack) else { return };
            let site = &mut sites[number];
            site.amounts += &totals.amounts;
            let weight = totals.amounts.peak_bytes.max(totals.amounts.outstanding_bytes);
            if weight > site.weight || site.weight == 0 {
                site.weight = weight.max(1);
                site.stack = totals.stack;
            }
        });
        // Stacks that are only in the course have sites, too.
        for moment in &self.summary.course.moments {
            moment.rows.iter().for_each(|row| {
                find(&mut sites, row.stack);
            });
        }
        for place in 0..moment_count {
            for (_, row) in self.rows(place) {
                let number = site_of.get(row.stack.0 as usize).copied().unwrap_or(NO_SITE);
                if let Some(site) = sites.get_mut(number as usize) {
                    site.held[place].add(row);
                }
            }
        }
        self.rest_owners = self.rest_owners(&site_of, &frames);
        for place in 0..moment_count {
            for rest in self.rests(place) {
                if let Some(&RestOwner::Site(number)) = self.rest_owners.get(&rest.row.stack)
                    && let Some(site) = sites.get_mut(number as usize)
                {
                    site.held[place].add(&rest.row);
                }
            }
        }
        (self.sites, self.site_of) = (sites, site_of);
    }

    /// Whether a stack belongs to a site. No stack belongs to a sum of sites, which has no number.
    pub(crate) fn is_of(&self, site: &Site, stack: StackIndex) -> bool {
        site.number != NO_SITE && self.site_of.get(stack.0 as usize) == Some(&site.number)
    }

    /// Stack of a site that holds most more at one moment than at another, or else the site's own.
    pub(crate) fn growing_stack(&self, site: &Site, from: usize, to: usize) -> StackIndex {
        self.growing_stacks(site, from, to).first().map_or(site.stack, |&(stack, _)| stack)
    }

    /// Stacks of a site that hold more at one moment than at another, and by how much; the largest
    /// growth first.
    pub(crate) fn growing_stacks(&self, site: &Site, from: usize, to: usize) -> Vec<(StackIndex, u64)> {
        let mut more: HashMap<StackIndex, i64> = HashMap::new();
        for (place, sign) in [(to, 1), (from, -1)] {
            for (_, row) in self.rows(place).filter(|(_, row)| self.is_of(site, row.stack)) {
                let bytes = i64::try_from(row.live_bytes).unwrap_or(i64::MAX).saturating_mul(sign);
                let sum = more.entry(row.stack).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        let grown = |(stack, bytes)| Some((stack, u64::try_from(bytes).ok().filter(|&bytes| bytes > 0)?));
        let mut grown: Vec<(StackIndex, u64)> = more.into_iter().filter_map(grown).collect();
        // (Equal amounts: the stack that was recorded first.)
        grown.sort_rows_by_key(|&(stack, bytes)| (std::cmp::Reverse(bytes), stack));
        grown
    }
}
