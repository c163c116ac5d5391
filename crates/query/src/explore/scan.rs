//! One pass over an event table: which allocations pass a filter, added up by site; the peak by a pass over the moves.
//!
//! It means what [`crate::replay`] and [`crate::collector`] mean, without a replay: a block is known by its number, and
//! "alive at" is a comparison of sequence numbers.

use heapr_trace::{HeapId, ProcessIndex, Totals};

use super::event_table::EventTable;
use crate::choice::Choice;
use crate::error::{Error, Result};
use crate::filter::{Filter, Moment, Span};
use crate::histogram::{HistogramCounter, HistogramOf};

/// Allocations between two questions whether the scan was given up.
const CANCEL_INTERVAL: usize = 1 << 20;

/// Amounts of a site.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SiteSums {
    pub(crate) total_count: u64,
    pub(crate) total_bytes: u64,
    pub(crate) temporary_count: u64,
    pub(crate) outstanding_count: u64,
    pub(crate) outstanding_bytes: u64,
    pub(crate) peak_count: u64,
    pub(crate) peak_bytes: u64,
}

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
    pub(crate) is_cancelled: &'a dyn Fn() -> bool,
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

/// Live bytes and their greatest sum.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Peak {
    live_bytes: u64,
    live_count: u64,
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    /// Sequence number of the birth that reached it; `None`: there was none.
    sequence: Option<u32>,
    pub(crate) time_ns: u64,
}

impl Peak {
    #[inline(always)]
    fn grow(&mut self, size_bytes: u64, sequence: u32) {
        self.live_bytes = self.live_bytes.saturating_add(size_bytes);
        self.live_count += 1;
        if self.live_bytes > self.bytes {
            self.bytes = self.live_bytes;
            self.count = self.live_count;
            self.sequence = Some(sequence);
        }
    }

    #[inline(always)]
    fn shrink(&mut self, size_bytes: u64) {
        self.live_bytes = self.live_bytes.saturating_sub(size_bytes);
        self.live_count = self.live_count.saturating_sub(1);
    }

    fn find_time(&mut self, table: &EventTable) {
        self.time_ns = self.sequence.map_or(0, |sequence| table.times.get(sequence));
    }
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
    /// 0 if nobody asks for it.
    lifetime_ns: u64,
}

/// By process and heap.
type HeapPeaks = Vec<(ProcessIndex, HeapId, Peak)>;

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
                        let (peak, _) = self.peak(from, to, false)?;
                        (peak.bytes, peak.time_ns)
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
            let (peak, heaps) = self.peak(from, to, is_whole)?;
            scanned.peak_time_ns = peak.time_ns;
            scanned.heap_peaks = is_whole.then_some(heaps);
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
        let mut level = Peak::default();
        let mut reached = to;
        self.for_each_chosen_move(from, to, |sequence, _, size_bytes, is_end| {
            if level.live_bytes >= bytes {
                reached = sequence;
                return false;
            }
            if is_end {
                level.shrink(size_bytes);
            } else {
                level.grow(size_bytes, sequence);
                if level.live_bytes >= bytes {
                    reached = sequence + 1;
                    return false;
                }
            }
            true
        })?;
        Ok(if bytes == 0 { from } else { reached })
    }

    /// The peak of the chosen processes, heaps and threads in a range, and those of the heaps if asked.
    fn peak(&self, from: u32, to: u32, by_heap: bool) -> Result<(Peak, HeapPeaks)> {
        let mut peak = Peak::default();
        let mut heaps: Vec<(ProcessIndex, HeapId, Peak)> = Vec::new();
        if by_heap {
            let mut numbers = hashbrown::HashMap::new();
            let heap_of: Vec<u32> = self
                .table
                .sites
                .iter()
                .map(|site| {
                    *numbers.entry((site.process, site.heap)).or_insert_with(|| {
                        heaps.push((site.process, site.heap, Peak::default()));
                        heaps.len() as u32 - 1
                    })
                })
                .collect();
            self.for_each_chosen_move(from, to, |sequence, site, size_bytes, is_end| {
                let heap = &mut heaps[heap_of[site] as usize].2;
                if is_end {
                    peak.shrink(size_bytes);
                    heap.shrink(size_bytes);
                } else {
                    peak.grow(size_bytes, sequence);
                    heap.grow(size_bytes, sequence);
                }
                true
            })?;
        } else {
            self.for_each_chosen_move(from, to, |sequence, _, size_bytes, is_end| {
                if is_end {
                    peak.shrink(size_bytes);
                } else {
                    peak.grow(size_bytes, sequence);
                }
                true
            })?;
        }
        peak.find_time(self.table);
        heaps.iter_mut().for_each(|(_, _, peak)| peak.find_time(self.table));
        Ok((peak, heaps))
    }

    /// Shows the moves of chosen allocations that are born in them: sequence, site, size, whether it is the end; until `visit`
    /// has enough.
    fn for_each_chosen_move(
        &self,
        from: u32,
        to: u32,
        mut visit: impl FnMut(u32, usize, u64, bool) -> bool,
    ) -> Result<()> {
        let table = self.table;
        let first = table.born_in(0, from).end;
        let is_chosen: Option<Vec<bool>> = (!self.choice.is_everything())
            .then(|| table.sites.iter().map(|site| site.is_chosen(self.choice)).collect());
        let mut sequence = from;
        for moves in table.moves[from as usize..to as usize].chunks(CANCEL_INTERVAL) {
            if (self.is_cancelled)() {
                return Err(Error::GivenUp);
            }
            for one in moves {
                let allocation = one.allocation();
                if allocation >= first {
                    let site = table.site_of[allocation] as usize;
                    if is_chosen.as_ref().is_none_or(|chosen| chosen[site])
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
        is_at_peak: impl Fn(u32, u32) -> bool,
    ) -> Result<()> {
        let mut all = vec![SiteSums::default(); self.table.sites.len()];
        let mut sizes = HistogramCounter::new(HistogramOf::Size);
        let mut lifetimes = HistogramCounter::new(HistogramOf::Lifetime);
        self.for_each_counted(window, |counted| {
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
                sizes.add(counted.size_bytes, counted.lifetime_ns, !counted.is_ended);
                lifetimes.add(counted.size_bytes, counted.lifetime_ns, !counted.is_ended);
            }
        })?;
        scanned.sums = all;
        if self.wants_histograms {
            scanned.histograms = vec![sizes, lifetimes];
        }
        Ok(())
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
        self.for_each_counted(&window, |counted| {
            visit(counted.site, counted.size_bytes, self.table.times.get(counted.birth));
        })
    }

    /// Shows the allocations of a window that pass the filter.
    #[inline(always)]
    fn for_each_counted(&self, window: &Window, mut visit: impl FnMut(Counted)) -> Result<()> {
        let table = self.table;
        let passes: Vec<bool> = table
            .sites
            .iter()
            .map(|site| {
                let has_required = |has: &[bool]| has.get(site.stack.0 as usize).copied().unwrap_or(false);
                site.is_chosen(self.choice) && self.has_required.is_none_or(has_required)
            })
            .collect();
        let needs_lifetime = self.wants_histograms || self.filter.lifetime.is_some();
        for start in (window.first..window.last).step_by(CANCEL_INTERVAL) {
            if (self.is_cancelled)() {
                return Err(Error::GivenUp);
            }
            for allocation in start..(start + CANCEL_INTERVAL).min(window.last) {
                let site = table.site_of[allocation] as usize;
                let end = table.ends[allocation].sequence();
                let is_ended = end < window.end;
                if !passes[site]
                    || end < window.alive_at
                    || window.wants_ended.is_some_and(|wanted| wanted != is_ended)
                {
                    continue;
                }
                let size_bytes = table.size_bytes(allocation);
                let is_temporary =
                    is_ended && window.is_born_inside && table.is_temporary(allocation, window.replayed_from);
                if self.filter.size.is_some_and(|size| !size.contains(size_bytes))
                    || (self.filter.is_temporary_only && !is_temporary)
                {
                    continue;
                }
                let birth = table.births[allocation];
                let mut lifetime_ns = 0;
                if needs_lifetime {
                    let free_ns = if is_ended { table.times.get(end) } else { window.end_ns };
                    lifetime_ns = free_ns.saturating_sub(table.times.get(birth));
                    if self.filter.lifetime.is_some_and(|lifetime| !lifetime.contains(lifetime_ns)) {
                        continue;
                    }
                }
                visit(Counted { site, size_bytes, birth, end, is_ended, is_temporary, lifetime_ns });
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
