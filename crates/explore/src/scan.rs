//! Sums by site of the allocations that a filter selects in an event table. They come from cached
//! sums where possible, else from a pass over the allocations.
//!
//! The result equals that of the query's replay and collector, without a replay. A block is
//! identified by its number, and "alive at" is a comparison of sequence numbers.

use std::collections::BTreeMap;

use heapr_query::engine::{Choice, HistogramCounter, Oddities};
use heapr_query::{Error, Filter, Moment, Result, Span};
use heapr_trace::{HeapId, ProcessIndex};

use crate::allocation_set::AllocationSet;
use crate::allocation_walk::{AllocationWalk, AtPeak, CANCEL_INTERVAL, Window};
use crate::bit_sums::Histograms;
use crate::cached_sums::SumsView;
use crate::event_table::{EventTable, Stray};
use crate::lifetime_column::{LifetimeColumn, bits_of};
use crate::peak::{HeapPeaks, Peak};
use crate::range_sums::RangeSums;
use crate::site_sums::SiteSums;
use crate::site_table::Site;

/// Inputs of a scan.
pub(crate) struct Scan<'a> {
    pub(crate) kept: SumsView<'a>,
    pub(crate) table: &'a EventTable,
    pub(crate) filter: &'a Filter,
    pub(crate) choice: &'a Choice,
    /// Whether each stack has the required frames; `None` if frames do not matter.
    pub(crate) has_required: Option<&'a [bool]>,
    pub(crate) duration_ns: u64,
    /// Bytes and time of the file's peak, from its summary.
    pub(crate) file_peak: Option<(u64, u64)>,
    /// Whether histograms of size and of lifetime are requested, in this order.
    pub(crate) wants_histograms: bool,
    /// Lifetimes, if histograms or the filter need them.
    pub(crate) lifetimes: Option<&'a LifetimeColumn>,
    /// Allocations that pass the filter, if it does not depend on time.
    pub(crate) passing: Option<&'a AllocationSet>,
}

/// Result of a scan.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// Sums by site.
    pub(crate) sums: Vec<SiteSums>,
    pub(crate) peak_time_ns: u64,
    /// Peaks of the heaps, if they are the filter's own: bytes, count, time.
    pub(crate) heap_peaks: Option<HeapPeaks>,
    /// Oddities by process and heap.
    pub(crate) oddities: BTreeMap<(ProcessIndex, HeapId), Oddities>,
    pub(crate) histograms: Vec<HistogramCounter>,
}

impl Scan<'_> {
    /// Runs the scan.
    pub(crate) fn run(&self) -> Result<Scanned> {
        let (range, from, to) = self.range();
        match self.filter.at {
            Some(Moment::At { time_ns }) => self.live(from, to, time_ns, None),
            Some(Moment::Peak) => {
                let known = self.kept.peak(from, to, self.choice)?;
                let (bytes, time_ns) = match self.file_peak {
                    Some(peak) if self.choice.is_everything() && self.filter.range.is_none() => peak,
                    _ => (known.0.bytes, known.0.time_ns),
                };
                self.live(from, to, time_ns, Some((bytes, known.0)))
            }
            Some(Moment::Snapshot { .. }) => Err(Error::Contradiction {
                first: "a snapshot",
                second: "a scan of events",
                reason: "its blocks stand in chunks of their own",
            }),
            None => self.born(from, to, range),
        }
    }

    /// The filter's range, also as sequence numbers.
    fn range(&self) -> (Span, u32, u32) {
        let range = self.filter.range.unwrap_or(Span { from: 0, to: u64::MAX });
        let from = self.table.times.count_before(range.from);
        (range, from, self.table.times.count_before(range.to).max(from))
    }

    fn born(&self, from: u32, to: u32, range: Span) -> Result<Scanned> {
        let kind = self.filter.allocation_type;
        let is_born_inside = kind.is_none_or(|kind| kind.is_allocated_inside());
        let inside = self.table.born_in(from, to);
        let window = Window {
            first: if is_born_inside { inside.start } else { 0 },
            last: if is_born_inside { inside.end } else { inside.start },
            end: to,
            alive_at: if is_born_inside { 0 } else { from },
            replayed_from: inside.start,
            end_ns: range.to.min(self.duration_ns),
            wants_ended: kind.map(|kind| kind.is_freed_inside()),
            is_born_inside,
            is_of_living: false,
        };
        let mut scanned = Scanned::default();
        let at_peak = if is_born_inside {
            // Of the conditions on an allocation, only the size is known at its birth.
            let is_whole = self.filter.lifetime.is_none()
                && !self.filter.is_temporary_only
                && self.has_required.is_none()
                && kind.is_none();
            let known = self.kept.peak(from, to, self.choice)?;
            let (peak, heaps) = &*known;
            scanned.peak_time_ns = peak.time_ns;
            scanned.heap_peaks = is_whole.then(|| heaps.clone());
            peak.sequence.map_or(AtPeak::Never, AtPeak::Behind)
        } else if self.is_anything_alive(&window)? {
            // All allocations that are live at the start are live at their peak, because later ones
            // do not count.
            scanned.peak_time_ns = range.from;
            AtPeak::Always
        } else {
            AtPeak::Never
        };
        self.add_up(&window, &mut scanned, at_peak)?;
        scanned.oddities = self.oddities(&window, range)?;
        Ok(scanned)
    }

    /// Whether the filter depends only on sites, and not on single allocations.
    fn is_by_site(&self) -> bool {
        self.filter.size.is_none() && self.filter.lifetime.is_none() && !self.filter.is_temporary_only
    }

    /// Whether an allocation of the chosen processes, heaps, threads and sizes is live where the
    /// range begins.
    fn is_anything_alive(&self, window: &Window) -> Result<bool> {
        let mut is_any = false;
        let visit = |allocation: usize| {
            let size_bytes = self.table.size_bytes(allocation);
            is_any |= size_bytes > 0
                && self.choice.has_size(size_bytes)
                && self.table.sites[self.table.site_of[allocation] as usize].is_chosen(self.choice);
        };
        let before = window.first..window.last;
        self.kept.last_ends()?.for_each_live(
            self.table,
            before,
            window.alive_at,
            self.kept.is_cancelled,
            visit,
        )?;
        Ok(is_any)
    }

    /// Allocations that are live after the moves at `time_ns`. With `until` (bytes, known peak): as
    /// soon as that many bytes are live.
    fn live(&self, from: u32, to: u32, time_ns: u64, until: Option<(u64, Peak)>) -> Result<Scanned> {
        let end = self.table.times.count_before(time_ns.saturating_add(1)).min(to).max(from);
        let end = match until {
            Some((bytes, known)) => match known.sequence.filter(|_| known.bytes == bytes) {
                // The peak is the move that reached it first.
                Some(sequence) => (sequence + 1).min(end),
                None => self.reached(from, end, bytes)?,
            },
            None => end,
        };
        let window = Window { is_of_living: true, ..self.outstanding_at(from, end, time_ns) };
        let mut scanned = Scanned { peak_time_ns: time_ns, ..Scanned::default() };
        self.add_up(&window, &mut scanned, AtPeak::Always)?;
        Ok(scanned)
    }

    /// Allocations that are born from the move `from` on and outstanding before the move `end`.
    fn outstanding_at(&self, from: u32, end: u32, end_ns: u64) -> Window {
        let inside = self.table.born_in(from, end);
        Window {
            first: inside.start,
            last: inside.end,
            end,
            alive_at: 0,
            replayed_from: inside.start,
            end_ns,
            wants_ended: Some(false),
            is_born_inside: true,
            is_of_living: false,
        }
    }

    /// First sequence number from `from` on before which `bytes` are live, at most `to`. Used for a
    /// file whose claimed peak differs from that of its events.
    fn reached(&self, from: u32, to: u32, bytes: u64) -> Result<u32> {
        let table = self.table;
        let mut live_bytes = 0_u64;
        let first = table.born_in(0, from).end;
        for sequence in from..to {
            if (sequence as usize).is_multiple_of(CANCEL_INTERVAL) && (self.kept.is_cancelled)() {
                return Err(Error::GivenUp);
            }
            let one = table.moves[sequence as usize];
            let allocation = one.allocation();
            if bytes == 0 {
                return Ok(from);
            }
            let site = &table.sites[table.site_of[allocation] as usize];
            if allocation < first || !site.is_chosen(self.choice) {
                continue;
            }
            let size_bytes = table.size_bytes(allocation);
            if !self.choice.has_size(size_bytes) {
                continue;
            }
            if one.is_end() {
                live_bytes = live_bytes.saturating_sub(size_bytes);
                continue;
            }
            live_bytes = live_bytes.saturating_add(size_bytes);
            if live_bytes >= bytes {
                return Ok(sequence + 1);
            }
        }
        Ok(if bytes == 0 { from } else { to })
    }

    /// Sums the allocations of a window.
    fn add_up(&self, window: &Window, scanned: &mut Scanned, at_peak: AtPeak) -> Result<()> {
        let sites = self.passing_sites();
        let is_kept = self.is_by_site()
            && window.is_born_inside
            && window.wants_ended != Some(false)
            && (sites.is_none() || !self.wants_histograms);
        if let Some(prefixes) = self.kept.prefixes()?.filter(|_| is_kept) {
            let (kept, wants_histograms) = (self.kept, self.wants_histograms);
            let (mut sums, histograms) =
                RangeSums { kept, prefixes, window, at_peak, wants_histograms }.find()?;
            for (sums, _) in sums.iter_mut().zip(sites.iter().flatten()).filter(|(_, passes)| !**passes) {
                *sums = SiteSums::default();
            }
            scanned.sums = sums;
            scanned.histograms = histograms.map_or_else(Vec::new, |all| vec![all.sizes, all.lifetimes]);
            return Ok(());
        }
        let counting = self.counting(sites.as_deref());
        let parts = self.kept.parallelism.map(window.first..window.last, |part| {
            let mut all = vec![SiteSums::default(); self.table.sites.len()];
            let mut bits = Histograms::new();
            if let Some(passing) = self.passing.filter(|_| !self.wants_histograms) {
                counting.add_passing(passing, part, window.end, at_peak, &mut all)?;
                return Ok((all, bits));
            }
            counting.for_each(&window.part(part), |counted| {
                all[counted.site].count_one(&counted, at_peak);
                if self.wants_histograms {
                    let (size_bytes, is_outstanding) = (counted.size_bytes, !counted.is_ended);
                    bits.sizes.add_to(bits_of(size_bytes), size_bytes, is_outstanding);
                    bits.lifetimes.add_to(counted.lifetime_bits, size_bytes, is_outstanding);
                }
            })?;
            Ok((all, bits))
        })?;
        let mut parts = parts.into_iter();
        let Some((mut all, mut bits)) = parts.next() else { return Ok(()) };
        for (sums, more) in parts {
            all.iter_mut().zip(&sums).for_each(|(sum, more)| **sum += more);
            bits.merge(&more);
        }
        scanned.sums = all;
        if self.wants_histograms {
            scanned.histograms = vec![bits.sizes, bits.lifetimes];
        }
        Ok(())
    }

    fn counting<'b>(&'b self, sites: Option<&'b [bool]>) -> AllocationWalk<'b> {
        AllocationWalk {
            kept: self.kept,
            filter: self.filter,
            sites,
            passing: self.passing,
            lifetimes: self.lifetimes,
            wants_lifetimes: self.wants_histograms,
        }
    }

    /// Allocations born before the range and live at its start: (number, bytes) of those freed in
    /// it, and of the others.
    pub(crate) fn older(&self) -> Result<[(u64, u64); 2]> {
        let (range, from, to) = self.range();
        let window = Window {
            first: 0,
            last: self.table.born_in(from, to).start,
            end: to,
            alive_at: from,
            replayed_from: 0,
            end_ns: range.to.min(self.duration_ns),
            wants_ended: None,
            is_born_inside: false,
            is_of_living: false,
        };
        let sites = self.passing_sites();
        let counting = self.counting(sites.as_deref());
        let parts = self.kept.parallelism.map(window.first..window.last, |part| {
            let mut sums = [(0_u64, 0_u64); 2];
            counting.for_each(&window.part(part), |counted| {
                let sum = &mut sums[usize::from(!counted.is_ended)];
                sum.0 += 1;
                sum.1 = sum.1.saturating_add(counted.size_bytes);
            })?;
            Ok(sums)
        })?;
        let add = |one: (u64, u64), other: (u64, u64)| (one.0 + other.0, one.1.saturating_add(other.1));
        Ok(parts.iter().fold([(0, 0); 2], |sums, part| [add(sums[0], part[0]), add(sums[1], part[1])]))
    }

    /// Whether each site passes the filter; `None` if all do.
    fn passing_sites(&self) -> Option<Vec<bool>> {
        if self.choice.is_every_origin() && self.has_required.is_none() {
            return None;
        }
        let has_required = |site: &Site| {
            let has = |has: &[bool]| has.get(site.stack.0 as usize).copied().unwrap_or(false);
            self.has_required.is_none_or(has)
        };
        let passes = |site: &Site| site.is_chosen(self.choice) && has_required(site);
        Some(self.table.sites.iter().map(passes).collect())
    }

    /// Passes the allocations that are outstanding at the end of the range to `visit`, with site,
    /// size and time of birth. `is_of_living`: without those of ended processes.
    pub(crate) fn for_each_outstanding(
        &self,
        is_of_living: bool,
        mut visit: impl FnMut(usize, u64, u64),
    ) -> Result<()> {
        let (range, from, to) = self.range();
        let window = self.outstanding_at(from, to, range.to.min(self.duration_ns));
        let window = Window { is_of_living, ..window };
        let sites = self.passing_sites();
        self.counting(sites.as_deref()).for_each(&window, |counted| {
            visit(counted.site, counted.size_bytes, self.table.times.get(counted.birth));
        })
    }

    /// Calls of the range that belong to no allocation, and ends without a free.
    fn oddities(&self, window: &Window, range: Span) -> Result<BTreeMap<(ProcessIndex, HeapId), Oddities>> {
        let (table, filter) = (self.table, self.filter);
        let mut by_heap: BTreeMap<(ProcessIndex, HeapId), Oddities> = BTreeMap::new();
        let is_chosen = |call: &Stray| {
            range.contains(call.time_ns) && self.choice.has_origin(call.process, call.heap, call.thread)
        };
        for failure in table.failures.iter().filter(|_| filter.is_known_at_birth()) {
            if is_chosen(&failure.call) && self.choice.has_size(failure.size_bytes) {
                by_heap.entry((failure.call.process, failure.call.heap)).or_default().failed += 1;
            }
        }
        for free in table.unknown_frees.iter().filter(|_| filter.counts_unknown_frees()) {
            if is_chosen(&free.call) {
                let oddities = by_heap.entry((free.call.process, free.call.heap)).or_default();
                oddities.inherited += u64::from(free.is_inherited);
                oddities.unmatched += u64::from(!free.is_inherited);
            }
        }
        if table.implied_ends.is_empty() {
            return Ok(by_heap);
        }
        let sites = self.passing_sites();
        let counting = self.counting(sites.as_deref());
        for &allocation in &table.implied_ends {
            let allocation = allocation as usize;
            if !(window.first..window.last).contains(&allocation) {
                continue;
            }
            counting.for_each(&window.part(allocation..allocation + 1), |counted| {
                if counted.is_ended {
                    let Site { process, heap, .. } = table.sites[counted.site];
                    by_heap.entry((process, heap)).or_default().implied += 1;
                }
            })?;
        }
        Ok(by_heap)
    }
}
