//! Walk over the allocations that pass a filter, for queries that no cached sum answers.

use std::ops::Range;

use heapr_query::{Error, Filter, Result, Span};

use crate::allocation_set::AllocationSet;
use crate::cached_sums::SumsView;
use crate::lifetime_column::{LifetimeColumn, LifetimeTest, bits_of_class, class_of};
use crate::site_sums::{Fate, SiteSums};

/// Number of allocations between two checks for cancellation.
pub(crate) const CANCEL_INTERVAL: usize = 1 << 20;

/// An allocation that passes the filter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedAllocation {
    pub(crate) site: usize,
    pub(crate) size_bytes: u64,
    pub(crate) birth: u32,
    /// Move after which the allocation is not live.
    pub(crate) last_move: u32,
    pub(crate) is_ended: bool,
    pub(crate) is_temporary: bool,
    /// Number of bits of the lifetime; 0 if not requested.
    pub(crate) lifetime_bits: u32,
}

/// The allocations that are examined, and the time at which they count as freed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// First allocation, and end (exclusive).
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// Limit of the ends that are seen: only those before this move.
    pub(crate) end: u32,
    /// Least last move of the examined allocations: selects those born before a range and live at
    /// its start.
    pub(crate) alive_at: u32,
    /// First allocation that a replay would see.
    pub(crate) replayed_from: usize,
    /// End of the lifetime of allocations that do not end.
    pub(crate) end_ns: u64,
    /// Selects allocations that end in the window, or those that do not; `None` for both.
    pub(crate) wants_ended: Option<bool>,
    pub(crate) is_born_inside: bool,
    /// True if blocks of ended processes count as ended. This holds for live blocks, and not for
    /// outstanding ones.
    pub(crate) is_of_living: bool,
}

impl Window {
    /// The window for a part of the allocations.
    pub(crate) fn part(&self, allocations: Range<usize>) -> Self {
        Self { first: allocations.start, last: allocations.end, ..*self }
    }
}

/// Condition for a counted allocation to be live at the peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtPeak {
    Never,
    Always,
    /// Live after this move.
    Behind(u32),
}

impl AtPeak {
    #[inline(always)]
    fn has(self, birth: u32, last_move: u32) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::Behind(peak) => birth <= peak && last_move > peak,
        }
    }
}

/// Inputs of a walk: conditions on allocations.
pub(crate) struct AllocationWalk<'a> {
    pub(crate) kept: SumsView<'a>,
    pub(crate) filter: &'a Filter,
    /// Whether each site passes the filter; `None` if all do.
    pub(crate) sites: Option<&'a [bool]>,
    /// Allocations that pass the filter, if it does not depend on time. Then the filter itself is
    /// not tested again.
    pub(crate) passing: Option<&'a AllocationSet>,
    /// Lifetimes, if they are needed.
    pub(crate) lifetimes: Option<&'a LifetimeColumn>,
    pub(crate) wants_lifetimes: bool,
}

impl AllocationWalk<'_> {
    /// Passes the allocations of a window that pass the filter to `visit`.
    #[inline(always)]
    pub(crate) fn for_each(&self, window: &Window, mut visit: impl FnMut(CountedAllocation)) -> Result<()> {
        let table = self.kept.table;
        let test = AllocationTest::new(self, window);
        let mut look = |allocation: usize| {
            if let Some(counted) = test.counted(allocation) {
                visit(counted);
            }
        };
        // Most allocations born before a range, and most of an outstanding query, have ended.
        let alive_at = if window.wants_ended == Some(false) { window.end } else { 0 }.max(window.alive_at);
        let is_cancelled = self.kept.is_cancelled;
        if alive_at > 0 {
            let last_ends = self.kept.last_ends()?;
            let allocations = window.first..window.last;
            if window.alive_at > 0 {
                // Live where the range begins, whatever the query requests.
                let mut look_at_living = |allocation: usize| {
                    if table.last_move(allocation) >= window.alive_at {
                        look(allocation);
                    }
                };
                return last_ends.for_each_alive(
                    table,
                    allocations,
                    alive_at,
                    is_cancelled,
                    &mut look_at_living,
                );
            }
            return last_ends.for_each_alive(table, allocations, alive_at, is_cancelled, look);
        }
        for start in (window.first..window.last).step_by(CANCEL_INTERVAL) {
            if is_cancelled() {
                return Err(Error::GivenUp);
            }
            (start..(start + CANCEL_INTERVAL).min(window.last)).for_each(&mut look);
        }
        Ok(())
    }

    /// Sums allocations that are known to pass, for a whole trace, in a minimal loop.
    #[inline(never)]
    pub(crate) fn add_passing(
        &self,
        passing: &AllocationSet,
        part: Range<usize>,
        window_end: u32,
        at_peak: AtPeak,
        all: &mut [SiteSums],
    ) -> Result<()> {
        let table = self.kept.table;
        for start in part.clone().step_by(CANCEL_INTERVAL) {
            if (self.kept.is_cancelled)() {
                return Err(Error::GivenUp);
            }
            passing.for_each(start..(start + CANCEL_INTERVAL).min(part.end), |allocation| {
                let end = table.ends[allocation].sequence();
                let is_ended = end < window_end;
                let fate = Fate {
                    is_ended,
                    is_temporary: is_ended && table.is_temporary(allocation, 0),
                    is_at_peak: at_peak.has(table.births[allocation], table.last_move(allocation)),
                };
                all[table.site_of[allocation] as usize].count(table.size_bytes(allocation), fate);
            });
        }
        Ok(())
    }
}

/// Test of single allocations against a filter, within a window.
struct AllocationTest<'a> {
    walk: &'a AllocationWalk<'a>,
    window: &'a Window,
    sites: Option<&'a [bool]>,
    size: Option<Span>,
    is_temporary_only: bool,
    lifetime: Option<LifetimeTest>,
    needs_lifetime: bool,
}

impl<'a> AllocationTest<'a> {
    #[inline(always)]
    fn new(walk: &'a AllocationWalk<'a>, window: &'a Window) -> Self {
        // The filter is not tested again for allocations that are known to pass.
        let is_known = walk.passing.is_some();
        let lifetime = walk.filter.lifetime.filter(|_| !is_known);
        Self {
            walk,
            window,
            sites: walk.sites.filter(|_| !is_known),
            size: walk.filter.size.filter(|_| !is_known),
            is_temporary_only: walk.filter.is_temporary_only && !is_known,
            lifetime: lifetime.map(LifetimeTest::new),
            needs_lifetime: walk.wants_lifetimes || lifetime.is_some(),
        }
    }

    /// Returns what is counted of an allocation; `None` if it does not pass.
    #[inline(always)]
    fn counted(&self, allocation: usize) -> Option<CountedAllocation> {
        let (table, window) = (self.walk.kept.table, self.window);
        if self.walk.passing.is_some_and(|passing| !passing.has(allocation)) {
            return None;
        }
        let end = table.ends[allocation].sequence();
        let last_move = table.last_move(allocation);
        let site = table.site_of[allocation] as usize;
        let is_ended = if window.is_of_living { last_move } else { end } < window.end;
        if self.sites.is_some_and(|sites| !sites[site])
            || window.wants_ended.is_some_and(|wanted| wanted != is_ended)
        {
            return None;
        }
        let size_bytes = table.size_bytes(allocation);
        let is_temporary =
            is_ended && window.is_born_inside && table.is_temporary(allocation, window.replayed_from);
        if self.size.is_some_and(|size| !size.contains(size_bytes))
            || (self.is_temporary_only && !is_temporary)
        {
            return None;
        }
        let birth = table.births[allocation];
        let mut lifetime_bits = 0;
        if self.needs_lifetime {
            let exact = || match is_ended {
                true => table.lifetime_ns(allocation, end),
                false => window.end_ns.saturating_sub(table.times.get(birth)),
            };
            let class = match self.walk.lifetimes {
                Some(known) if is_ended => known.class(allocation),
                _ => class_of(exact()),
            };
            if self.lifetime.as_ref().is_some_and(|test| !test.passes(class, exact)) {
                return None;
            }
            lifetime_bits = bits_of_class(class);
        }
        Some(CountedAllocation { site, size_bytes, birth, last_move, is_ended, is_temporary, lifetime_bits })
    }
}

impl SiteSums {
    /// Counts an allocation.
    #[inline(always)]
    pub(crate) fn count_one(&mut self, counted: &CountedAllocation, at_peak: AtPeak) {
        let fate = Fate {
            is_ended: counted.is_ended,
            is_temporary: counted.is_temporary,
            is_at_peak: at_peak.has(counted.birth, counted.last_move),
        };
        self.count(counted.size_bytes, fate);
    }
}
