//! One pass over an event table: which allocations pass a filter, added up by site; the peak by a pass over the moves.
//!
//! It means what [`crate::replay`] and [`crate::collector`] mean, without a replay: a block is known by its number, and
//! "alive at" is a comparison of sequence numbers.

use std::ops::Range;
use std::sync::Arc;

use heapr_trace::{ProcessIndex, Totals};

use super::site_table::Site;

use super::event_table::EventTable;
use super::lifetime_column::{LifetimeColumn, LifetimeTest, bits_of};
use super::passing::Passing;
use super::peak::{HeapPeaks, Peak, PeakPart};
use super::remembered::Remembered;
use super::spread::Spread;
use crate::choice::Choice;
use crate::error::{Error, Result};
use crate::filter::{Filter, Moment, Span};
use crate::histogram::{HistogramCounter, HistogramOf};

/// Allocations between two questions whether the scan was given up.
const CANCEL_INTERVAL: usize = 1 << 20;

/// Amounts of a site: in one line of the cache, as a scan goes from site to site in no order.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct SiteSums {
    pub(crate) total_count: u64,
    pub(crate) total_bytes: u64,
    pub(crate) temporary_count: u64,
    pub(crate) outstanding_count: u64,
    pub(crate) outstanding_bytes: u64,
    pub(crate) peak_count: u64,
    pub(crate) peak_bytes: u64,
}

impl SiteSums {
    fn add(&mut self, other: &Self) {
        self.total_count += other.total_count;
        self.total_bytes = self.total_bytes.saturating_add(other.total_bytes);
        self.temporary_count += other.temporary_count;
        self.outstanding_count += other.outstanding_count;
        self.outstanding_bytes = self.outstanding_bytes.saturating_add(other.outstanding_bytes);
        self.peak_count += other.peak_count;
        self.peak_bytes = self.peak_bytes.saturating_add(other.peak_bytes);
    }
}

/// Peaks of ranges of moves, which only a choice of processes, heaps and threads changes: that of the whole, and the heaps'.
pub(crate) type KnownPeaks = Remembered<(u32, u32, Choice), (Peak, HeapPeaks)>;

/// What is asked of a table.
pub(crate) struct Scan<'a> {
    pub(crate) table: &'a EventTable,
    pub(crate) filter: &'a Filter,
    pub(crate) choice: &'a Choice,
    /// By stack: whether the required frames are there; `None`: no matter.
    pub(crate) has_required: Option<&'a [bool]>,
    pub(crate) duration_ns: u64,
    /// Bytes and time of the file's peak, as its summary has them.
    pub(crate) file_peak: Option<(u64, u64)>,
    /// Histograms of size and of lifetime, in this order.
    pub(crate) wants_histograms: bool,
    /// There if histograms or lifetimes are asked for.
    pub(crate) lifetimes: Option<&'a LifetimeColumn>,
    pub(crate) peaks: &'a KnownPeaks,
    /// Which allocations pass the filter, where that depends on no time: then nothing of the filter is looked at again.
    pub(crate) passing: Option<&'a Passing>,
    pub(crate) spread: Spread,
    pub(crate) is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// What a scan found.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// By site.
    pub(crate) sums: Vec<SiteSums>,
    pub(crate) peak_time_ns: u64,
    /// The heaps' own peaks, where they are the filter's: bytes, count, time.
    pub(crate) heap_peaks: Option<HeapPeaks>,
    /// The counters that belong to no allocation.
    pub(crate) counters: Totals,
    pub(crate) histograms: Vec<HistogramCounter>,
}

/// An allocation that passes the filter.
#[derive(Debug, Clone, Copy)]
struct Counted {
    site: usize,
    size_bytes: u64,
    birth: u32,
    end: u32,
    is_ended: bool,
    is_temporary: bool,
    /// Bits of its lifetime; 0 if nobody asks for it.
    lifetime_bits: u32,
}

/// Which allocations are looked at, and when they count as freed.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// Numbers of the allocations.
    first: usize,
    last: usize,
    /// Only ends before this are seen.
    end: u32,
    /// Only allocations that live on at this: of what was born before the range.
    alive_at: u32,
    /// The first allocation that the replay would see.
    replayed_from: usize,
    /// What becomes of those that do not end: they are looked at until then.
    end_ns: u64,
    /// Only those that end (or do not end) in the window.
    wants_ended: Option<bool>,
    is_born_inside: bool,
}

impl Scan<'_> {
    /// Makes the scan.
    pub(crate) fn run(&self) -> Result<Scanned> {
        let range = self.filter.range.unwrap_or(Span { from: 0, to: u64::MAX });
        let from = self.table.times.count_before(range.from);
        let to = self.table.times.count_before(range.to).max(from);
        match self.filter.at {
            Some(Moment::At { time_ns }) => self.live(from, to, time_ns, None),
            Some(Moment::Peak) => {
                let (bytes, time_ns) = match self.file_peak {
                    Some(peak) if self.choice.is_everything() && self.filter.range.is_none() => peak,
                    _ => {
                        let known = self.peak(from, to)?;
                        (known.0.bytes, known.0.time_ns)
                    }
                };
                self.live(from, to, time_ns, Some(bytes))
            }
            Some(Moment::Snapshot { .. }) => Err(Error::Contradiction {
                first: "a snapshot",
                second: "a scan of events",
                reason: "its blocks stand in chunks of their own",
            }),
            None => self.born(from, to, range),
        }
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
        };
        let mut scanned = Scanned::default();
        let is_alive_at_peak: Option<u32> = if is_born_inside {
            let is_whole = self.filter.size.is_none()
                && self.filter.lifetime.is_none()
                && !self.filter.is_temporary_only
                && self.has_required.is_none()
                && kind.is_none();
            let known = self.peak(from, to)?;
            let (peak, heaps) = &*known;
            scanned.peak_time_ns = peak.time_ns;
            scanned.heap_peaks = is_whole.then(|| heaps.clone());
            peak.sequence
        } else {
            // All that was live at the start is live at its peak, as nothing that comes later counts.
            let is_any = (window.first..window.last).any(|allocation| {
                self.table.ends[allocation].sequence() >= from
                    && self.table.size_bytes(allocation) > 0
                    && self.table.sites[self.table.site_of[allocation] as usize].is_chosen(self.choice)
            });
            scanned.peak_time_ns = if is_any { range.from } else { 0 };
            is_any.then_some(from.wrapping_sub(1))
        };
        self.add_up(&window, &mut scanned, |birth, end| match is_alive_at_peak {
            Some(peak) if is_born_inside => birth <= peak && end > peak,
            Some(_) => true,
            None => false,
        })?;
        self.count_oddities(&window, from, to, range, &mut scanned.counters);
        Ok(scanned)
    }

    /// What is live after the moves at `time_ns` (with `until_bytes`: as soon as that many bytes are).
    fn live(&self, from: u32, to: u32, time_ns: u64, until_bytes: Option<u64>) -> Result<Scanned> {
        let end = self.table.times.count_before(time_ns.saturating_add(1)).min(to).max(from);
        let end = match until_bytes {
            Some(bytes) => self.reached(from, end, bytes)?,
            None => end,
        };
        let inside = self.table.born_in(from, end);
        let window = Window {
            first: inside.start,
            last: inside.end,
            end,
            alive_at: 0,
            replayed_from: inside.start,
            end_ns: time_ns,
            wants_ended: Some(false),
            is_born_inside: true,
        };
        let mut scanned = Scanned { peak_time_ns: time_ns, ..Scanned::default() };
        self.add_up(&window, &mut scanned, |_, _| true)?;
        Ok(scanned)
    }

    /// The first sequence number from `from` on before which `bytes` are live, at most `to`.
    fn reached(&self, from: u32, to: u32, bytes: u64) -> Result<u32> {
        let mut live_bytes = 0_u64;
        let mut reached = to;
        let first = self.table.born_in(0, from).end;
        let is_chosen = self.chosen_sites();
        self.for_each_chosen_move(
            from,
            to,
            first,
            is_chosen.as_deref(),
            |sequence, _, size_bytes, is_end| {
                live_bytes = if is_end {
                    live_bytes.saturating_sub(size_bytes)
                } else {
                    live_bytes.saturating_add(size_bytes)
                };
                if !is_end && live_bytes >= bytes {
                    reached = sequence + 1;
                    return false;
                }
                true
            },
        )?;
        Ok(if bytes == 0 { from } else { reached })
    }

    /// The peak of the chosen processes, heaps and threads in a range, and those of the heaps.
    pub(crate) fn peak(&self, from: u32, to: u32) -> Result<Arc<(Peak, HeapPeaks)>> {
        self.peaks.try_get(&(from, to, self.choice.clone()), || self.find_peak(from, to))
    }

    fn find_peak(&self, from: u32, to: u32) -> Result<(Peak, HeapPeaks)> {
        let mut heaps: HeapPeaks = Vec::new();
        let mut numbers = hashbrown::HashMap::new();
        let number_of = self.table.sites.iter().map(|site| {
            *numbers.entry((site.process, site.heap)).or_insert_with(|| {
                heaps.push((site.process, site.heap, Peak::default()));
                heaps.len() as u32 - 1
            })
        });
        let heap_of: Vec<u32> = number_of.collect();
        // With one heap its peak is the whole's.
        let is_one_heap = heaps.len() == 1;
        let tells_heaps = !is_one_heap;
        let first = self.table.born_in(0, from).end;
        let is_chosen = self.chosen_sites();
        let parts = self.spread.map(from as usize..to as usize, |part| {
            let mut whole = PeakPart::default();
            let mut by_heap = vec![PeakPart::default(); if tells_heaps { heaps.len() } else { 0 }];
            let (from, to) = (part.start as u32, part.end as u32);
            self.for_each_chosen_move(
                from,
                to,
                first,
                is_chosen.as_deref(),
                |sequence, site, size_bytes, is_end| {
                    whole.step(size_bytes, sequence, is_end);
                    if tells_heaps {
                        by_heap[heap_of[site] as usize].step(size_bytes, sequence, is_end);
                    }
                    true
                },
            )?;
            Ok((whole, by_heap))
        })?;
        let mut peak = Peak::default();
        for (whole, by_heap) in &parts {
            peak.append(whole);
            heaps.iter_mut().zip(by_heap).for_each(|((.., peak), part)| peak.append(part));
        }
        peak.find_time(self.table);
        heaps.iter_mut().for_each(|(.., peak)| peak.find_time(self.table));
        if is_one_heap {
            heaps[0].2 = peak;
        }
        Ok((peak, heaps))
    }

    /// By site whether processes, heaps and threads are chosen; nothing if all are.
    fn chosen_sites(&self) -> Option<Vec<bool>> {
        (!self.choice.is_everything())
            .then(|| self.table.sites.iter().map(|site| site.is_chosen(self.choice)).collect())
    }

    /// Shows the moves of chosen allocations from number `first` on: sequence, site, size, whether it is the end; until `visit`
    /// has enough.
    fn for_each_chosen_move(
        &self,
        from: u32,
        to: u32,
        first: usize,
        is_chosen: Option<&[bool]>,
        mut visit: impl FnMut(u32, usize, u64, bool) -> bool,
    ) -> Result<()> {
        let table = self.table;
        let mut sequence = from;
        for moves in table.moves[from as usize..to as usize].chunks(CANCEL_INTERVAL) {
            if (self.is_cancelled)() {
                return Err(Error::GivenUp);
            }
            for one in moves {
                let allocation = one.allocation();
                if allocation >= first {
                    let site = table.site_of[allocation] as usize;
                    if is_chosen.is_none_or(|chosen| chosen[site])
                        && !visit(sequence, site, table.size_bytes(allocation), one.is_end())
                    {
                        return Ok(());
                    }
                }
                sequence += 1;
            }
        }
        Ok(())
    }

    /// Adds the allocations of a window up. `is_at_peak`: of birth and end.
    fn add_up(
        &self,
        window: &Window,
        scanned: &mut Scanned,
        is_at_peak: impl Fn(u32, u32) -> bool + Sync,
    ) -> Result<()> {
        let passes = self.passing_sites();
        let parts = self.spread.map(window.first..window.last, |part| {
            let mut all = vec![SiteSums::default(); self.table.sites.len()];
            let mut sizes = HistogramCounter::new(HistogramOf::Size);
            let mut lifetimes = HistogramCounter::new(HistogramOf::Lifetime);
            if let Some(passing) = self.passing.filter(|_| !self.wants_histograms) {
                self.add_passing(passing, part, window.end, &is_at_peak, &mut all)?;
                return Ok((all, sizes, lifetimes));
            }
            let window = Window { first: part.start, last: part.end, ..*window };
            self.for_each_counted(&window, &passes, |counted| {
                let sums = &mut all[counted.site];
                sums.total_count += 1;
                sums.total_bytes = sums.total_bytes.saturating_add(counted.size_bytes);
                sums.temporary_count += u64::from(counted.is_temporary);
                if !counted.is_ended {
                    sums.outstanding_count += 1;
                    sums.outstanding_bytes = sums.outstanding_bytes.saturating_add(counted.size_bytes);
                }
                if is_at_peak(counted.birth, counted.end) {
                    sums.peak_count += 1;
                    sums.peak_bytes = sums.peak_bytes.saturating_add(counted.size_bytes);
                }
                if self.wants_histograms {
                    sizes.add_to(bits_of(counted.size_bytes), counted.size_bytes, !counted.is_ended);
                    lifetimes.add_to(counted.lifetime_bits, counted.size_bytes, !counted.is_ended);
                }
            })?;
            Ok((all, sizes, lifetimes))
        })?;
        let mut parts = parts.into_iter();
        let Some((mut all, mut sizes, mut lifetimes)) = parts.next() else { return Ok(()) };
        for (sums, more_sizes, more_lifetimes) in parts {
            all.iter_mut().zip(&sums).for_each(|(sum, more)| sum.add(more));
            sizes.merge(&more_sizes);
            lifetimes.merge(&more_lifetimes);
        }
        scanned.sums = all;
        if self.wants_histograms {
            scanned.histograms = vec![sizes, lifetimes];
        }
        Ok(())
    }

    /// Adds those up that are known to pass: the same as [`Scan::add_up`] of a whole trace, in a loop with nothing else in it.
    #[inline(never)]
    fn add_passing(
        &self,
        passing: &Passing,
        part: Range<usize>,
        window_end: u32,
        is_at_peak: &impl Fn(u32, u32) -> bool,
        all: &mut [SiteSums],
    ) -> Result<()> {
        let table = self.table;
        for start in part.clone().step_by(CANCEL_INTERVAL) {
            if (self.is_cancelled)() {
                return Err(Error::GivenUp);
            }
            passing.for_each(start..(start + CANCEL_INTERVAL).min(part.end), |allocation| {
                let size_bytes = table.size_bytes(allocation);
                let end = table.ends[allocation].sequence();
                let is_ended = end < window_end;
                let sums = &mut all[table.site_of[allocation] as usize];
                sums.total_count += 1;
                sums.total_bytes = sums.total_bytes.saturating_add(size_bytes);
                sums.temporary_count += u64::from(is_ended && table.is_temporary(allocation, 0));
                if !is_ended {
                    sums.outstanding_count += 1;
                    sums.outstanding_bytes = sums.outstanding_bytes.saturating_add(size_bytes);
                }
                if is_at_peak(table.births[allocation], end) {
                    sums.peak_count += 1;
                    sums.peak_bytes = sums.peak_bytes.saturating_add(size_bytes);
                }
            });
        }
        Ok(())
    }

    /// What was born before the range and is alive at its start: freed in it, and not (number, bytes).
    pub(crate) fn older(&self) -> Result<[(u64, u64); 2]> {
        let range = self.filter.range.unwrap_or(Span { from: 0, to: u64::MAX });
        let from = self.table.times.count_before(range.from);
        let to = self.table.times.count_before(range.to).max(from);
        let window = Window {
            first: 0,
            last: self.table.born_in(from, to).start,
            end: to,
            alive_at: from,
            replayed_from: 0,
            end_ns: range.to.min(self.duration_ns),
            wants_ended: None,
            is_born_inside: false,
        };
        let passes = self.passing_sites();
        let parts = self.spread.map(window.first..window.last, |part| {
            let mut sums = [(0_u64, 0_u64); 2];
            let window = Window { first: part.start, last: part.end, ..window };
            self.for_each_counted(&window, &passes, |counted| {
                let sum = &mut sums[usize::from(!counted.is_ended)];
                sum.0 += 1;
                sum.1 = sum.1.saturating_add(counted.size_bytes);
            })?;
            Ok(sums)
        })?;
        let add = |one: (u64, u64), other: (u64, u64)| (one.0 + other.0, one.1.saturating_add(other.1));
        Ok(parts.iter().fold([(0, 0); 2], |sums, part| [add(sums[0], part[0]), add(sums[1], part[1])]))
    }

    /// By site whether the filter lets it pass.
    fn passing_sites(&self) -> Vec<bool> {
        let has_required = |site: &Site| {
            let has = |has: &[bool]| has.get(site.stack.0 as usize).copied().unwrap_or(false);
            self.has_required.is_none_or(has)
        };
        self.table.sites.iter().map(|site| site.is_chosen(self.choice) && has_required(site)).collect()
    }

    /// Shows what is outstanding at the end of the range, with its site and time of birth.
    pub(crate) fn for_each_outstanding(&self, mut visit: impl FnMut(usize, u64, u64)) -> Result<()> {
        let range = self.filter.range.unwrap_or(Span { from: 0, to: u64::MAX });
        let from = self.table.times.count_before(range.from);
        let to = self.table.times.count_before(range.to).max(from);
        let inside = self.table.born_in(from, to);
        let window = Window {
            first: inside.start,
            last: inside.end,
            end: to,
            alive_at: 0,
            replayed_from: inside.start,
            end_ns: range.to.min(self.duration_ns),
            wants_ended: Some(false),
            is_born_inside: true,
        };
        self.for_each_counted(&window, &self.passing_sites(), |counted| {
            visit(counted.site, counted.size_bytes, self.table.times.get(counted.birth));
        })
    }

    /// Shows the allocations of a window that pass the filter.
    #[inline(always)]
    fn for_each_counted(
        &self,
        window: &Window,
        passes: &[bool],
        mut visit: impl FnMut(Counted),
    ) -> Result<()> {
        let table = self.table;
        // What is known to pass is not tested again.
        let (passing, filter) = match self.passing {
            Some(passing) => (Some(passing), &Filter::default()),
            None => (None, self.filter),
        };
        let needs_lifetime = self.wants_histograms || filter.lifetime.is_some();
        let test = filter.lifetime.map(LifetimeTest::new);
        for start in (window.first..window.last).step_by(CANCEL_INTERVAL) {
            if (self.is_cancelled)() {
                return Err(Error::GivenUp);
            }
            for allocation in start..(start + CANCEL_INTERVAL).min(window.last) {
                if passing.is_some_and(|passing| !passing.has(allocation)) {
                    continue;
                }
                // Of what was born before a range most is gone: nothing else of it is looked at.
                let end = table.ends[allocation].sequence();
                if end < window.alive_at {
                    continue;
                }
                let site = table.site_of[allocation] as usize;
                let is_ended = end < window.end;
                if (passing.is_none() && !passes[site])
                    || window.wants_ended.is_some_and(|wanted| wanted != is_ended)
                {
                    continue;
                }
                let size_bytes = table.size_bytes(allocation);
                let is_temporary =
                    is_ended && window.is_born_inside && table.is_temporary(allocation, window.replayed_from);
                if filter.size.is_some_and(|size| !size.contains(size_bytes))
                    || (filter.is_temporary_only && !is_temporary)
                {
                    continue;
                }
                let birth = table.births[allocation];
                let mut lifetime_bits = 0;
                if needs_lifetime {
                    let exact = || match is_ended {
                        true => table.lifetime_ns(allocation, end),
                        false => window.end_ns.saturating_sub(table.times.get(birth)),
                    };
                    lifetime_bits = match self.lifetimes {
                        Some(known) if is_ended => known.bits(allocation),
                        _ => bits_of(exact()),
                    };
                    if test.as_ref().is_some_and(|test| !test.passes(lifetime_bits, exact)) {
                        continue;
                    }
                }
                visit(Counted { site, size_bytes, birth, end, is_ended, is_temporary, lifetime_bits });
            }
        }
        Ok(())
    }

    fn count_oddities(&self, window: &Window, from: u32, to: u32, range: Span, counters: &mut Totals) {
        let table = self.table;
        let is_chosen = |process: ProcessIndex| self.choice.has_process(process);
        counters.failed_count = table
            .failures
            .iter()
            .filter(|failure| range.contains(failure.time_ns) && is_chosen(failure.process))
            .count() as u64;
        let is_seen = |&&allocation: &&u32| {
            let allocation = allocation as usize;
            let end = table.ends[allocation].sequence();
            let is_known = allocation >= window.replayed_from || !window.is_born_inside;
            is_known && (from..to).contains(&end)
        };
        let process_of = |allocation: &u32| table.sites[table.site_of[*allocation as usize] as usize].process;
        counters.implied_frees =
            table.implied_ends.iter().filter(is_seen).filter(|end| is_chosen(process_of(end))).count() as u64;
        if self.filter.range.is_none() {
            for (_, frees) in table.unknown_frees.iter().filter(|&(&process, _)| is_chosen(process)) {
                counters.unmatched_frees += frees.unmatched;
                counters.inherited_frees += frees.inherited;
            }
        }
    }
}
