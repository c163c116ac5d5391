//! Computes timelines: parts of the moves, each from zero, combined in order.
//!
//! ```text
//!  alive at the start ──> base ─┬─> part 0 (bins 0..k) ──> its end, added to the base ─┬─> part 1 ──> …
//!                               └── levels of part 0 = base + what the part counts     └── and so on
//! ```

use std::ops::Range;

use heapr_query::{Error, Result};

use crate::allocation_set::AllocationSet;
use crate::event_table::EventTable;
use crate::last_ends::LastEnds;
use crate::move_batch::{MoveBatch, TOGETHER};
use crate::move_columns::MoveColumns;
use crate::parallelism::Parallelism;
use crate::size_column::SizeColumn;
use crate::timeline::{Timeline, TimelineOf};

/// A pass over the moves of a timeline.
pub(crate) struct TimelinePass<'a> {
    pub(crate) table: &'a EventTable,
    pub(crate) passing: &'a AllocationSet,
    pub(crate) last_ends: &'a LastEnds,
    /// Variances that are added up in place of sizes; each allocation counts as one.
    pub(crate) variances: Option<&'a SizeColumn>,
    /// Columns in the order of the moves, if they are computed; of sizes alone.
    pub(crate) columns: Option<&'a MoveColumns>,
    /// Number of each site's group.
    pub(crate) group_of: &'a [u32],
    /// Sequence numbers at which the bins begin, and the end of the last.
    pub(crate) borders: &'a [u32],
    pub(crate) of: TimelineOf,
    /// Number of all groups, including those without allocations that pass the filter.
    pub(crate) group_count: usize,
    pub(crate) parallelism: Parallelism,
    pub(crate) is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// Live bytes and blocks, or a change of them. Wide enough for any values of a file.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    bytes: i128,
    count: i64,
}

impl Level {
    fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, count: self.count + other.count }
    }
}

/// Changes that some bins add to the live memory before them.
#[derive(Debug, Default)]
struct Part {
    /// Level at the end of each bin.
    levels: Vec<Level>,
    /// Level at the moment of most bytes in each bin.
    most: Vec<Level>,
    alloc_bytes: Vec<u64>,
    alloc_count: Vec<u64>,
    free_bytes: Vec<u64>,
    free_count: Vec<u64>,
    /// Values by wanted group and bin.
    values: Vec<Vec<i128>>,
    /// The first of the highest levels after a birth, with its sequence number.
    highest: Option<(Level, u32)>,
    /// Amount of each group at the end.
    amounts: Vec<i128>,
    /// Largest amount of each group at the end of a bin; `None` if it did not grow.
    most_of: Vec<Option<i128>>,
}

/// Moves of one bin, added up.
#[derive(Debug, Default)]
struct BinMoves {
    alloc_bytes: u64,
    alloc_count: u64,
    free_bytes: u64,
    free_count: u64,
}

impl Part {
    fn new(bin_count: usize, wanted_count: usize, group_count: usize, wants_most: bool) -> Self {
        Self {
            values: vec![Vec::with_capacity(bin_count); wanted_count],
            amounts: vec![0; group_count],
            most_of: vec![None; if wants_most { group_count } else { 0 }],
            ..Self::default()
        }
    }

    /// Raises the greatest values of the groups that grew in a bin; no other can be exceeded.
    fn raise_most(&mut self, grown: &[u32]) {
        for &group in grown {
            let amount = self.amounts[group as usize];
            let known = &mut self.most_of[group as usize];
            *known = Some(known.map_or(amount, |known| known.max(amount)));
        }
    }

    /// Appends a bin. `level`: at its end; `most`: when its bytes were most.
    fn end_bin(&mut self, wanted: &[u32], level: Level, most: Level, moves: &BinMoves) {
        for (series, &group) in self.values.iter_mut().zip(wanted) {
            series.push(self.amounts[group as usize]);
        }
        self.levels.push(level);
        self.most.push(most);
        self.alloc_bytes.push(moves.alloc_bytes);
        self.alloc_count.push(moves.alloc_count);
        self.free_bytes.push(moves.free_bytes);
        self.free_count.push(moves.free_count);
    }
}

impl TimelinePass<'_> {
    /// The whole timeline, and the values of the `wanted` groups by bin.
    pub(crate) fn draw(&self, wanted: &[u32]) -> Result<(Timeline, Vec<Vec<u64>>)> {
        let (timeline, values, _) = self.pass(wanted, false)?;
        Ok((timeline, values))
    }

    /// Greatest value of each group at the end of a bin.
    pub(crate) fn greatest(&self) -> Result<Vec<u64>> {
        Ok(self.pass(&[], true)?.2)
    }

    fn pass(&self, wanted: &[u32], wants_most: bool) -> Result<(Timeline, Vec<Vec<u64>>, Vec<u64>)> {
        let table = self.table;
        let has_groups = wants_most || !wanted.is_empty();
        let (mut level, mut base) = self.start(has_groups)?;
        let first = self.borders[0] as usize;
        let last = self.borders[self.borders.len() - 1] as usize;
        let bins = self.borders.len() - 1;
        // A part begins with the first bin that begins in it; bins without moves belong to the part
        // with their border.
        let bin_at =
            |sequence: usize| self.borders.partition_point(|&border| (border as usize) < sequence).min(bins);
        let parts = self.parallelism.map(first..last, |part| {
            let from = if part.start == first { 0 } else { bin_at(part.start) };
            let to = if part.end == last { bins } else { bin_at(part.end) };
            self.part(from..to.max(from), wanted, wants_most)
        })?;
        let unsigned = |value: i128| u64::try_from(value.max(0)).unwrap_or(u64::MAX);
        let counted = |value: i64| u64::try_from(value).unwrap_or(0);
        let mut timeline =
            Timeline { peak: (0, unsigned(level.bytes), counted(level.count)), ..Timeline::default() };
        let mut highest = level.bytes;
        let mut peak_sequence = None;
        let mut values = vec![Vec::with_capacity(bins); wanted.len()];
        let mut most: Vec<u64> =
            if wants_most { base.iter().map(|&amount| unsigned(amount)).collect() } else { Vec::new() };
        for part in parts {
            for (at, most) in part.levels.iter().zip(&part.most) {
                let (end, most) = (level.plus(*at), level.plus(*most));
                timeline.live_bytes.push(unsigned(end.bytes));
                timeline.live_count.push(counted(end.count));
                timeline.most_bytes.push(unsigned(most.bytes));
                timeline.most_count.push(counted(most.count));
            }
            timeline.alloc_bytes.extend(part.alloc_bytes);
            timeline.alloc_count.extend(part.alloc_count);
            timeline.free_bytes.extend(part.free_bytes);
            timeline.free_count.extend(part.free_count);
            if let Some((high, sequence)) = part.highest
                && level.bytes + high.bytes > highest
            {
                highest = level.bytes + high.bytes;
                timeline.peak = (0, unsigned(highest), counted(level.count + high.count));
                peak_sequence = Some(sequence);
            }
            for ((all, part), &group) in values.iter_mut().zip(part.values).zip(wanted) {
                let base = base[group as usize];
                all.extend(part.into_iter().map(|value| unsigned(base + value)));
            }
            for ((most, grown), base) in most.iter_mut().zip(part.most_of).zip(&base) {
                *most = (*most).max(grown.map_or(0, |grown| unsigned(base + grown)));
            }
            level = level.plus(part.levels.last().copied().unwrap_or_default());
            if self.is_level() {
                base.iter_mut().zip(part.amounts).for_each(|(base, amount)| *base += amount);
            }
        }
        timeline.peak_end = peak_sequence.map_or(self.borders[0], |sequence| sequence + 1);
        timeline.peak.0 = match (peak_sequence, self.borders[0]) {
            (Some(sequence), _) => table.times.get(sequence),
            (None, 0) => 0,
            (None, first) => table.times.get(first - 1),
        };
        Ok((timeline, values, most))
    }

    fn is_level(&self) -> bool {
        matches!(self.of, TimelineOf::LiveBytes | TimelineOf::LiveCount)
    }

    /// Group of an allocation.
    #[inline(always)]
    fn group(&self, allocation: usize) -> usize {
        self.group_of[self.table.site_of[allocation] as usize] as usize
    }

    /// Amounts that are added up.
    #[inline(always)]
    fn sizes(&self) -> &SizeColumn {
        self.variances.unwrap_or(&self.table.sizes)
    }

    /// Number of allocations that one counts as.
    #[inline(always)]
    fn count(&self, allocation: usize) -> u64 {
        if self.variances.is_some() { 1 } else { self.table.count(allocation) }
    }

    /// Contribution of an allocation to a group's amount.
    fn unit(&self, size_bytes: u64, count: u64) -> i128 {
        let is_bytes = matches!(self.of, TimelineOf::LiveBytes | TimelineOf::AllocBytes);
        i128::from(if is_bytes { size_bytes } else { count })
    }

    /// Live bytes before a move.
    pub(crate) fn live_bytes_before(&self, sequence: u32) -> Result<u64> {
        let (level, _) = self.live_before(sequence, false)?;
        Ok(u64::try_from(level.bytes).unwrap_or(0))
    }

    /// Live memory where the timeline begins: all, and by group.
    fn start(&self, has_groups: bool) -> Result<(Level, Vec<i128>)> {
        self.live_before(self.borders[0], has_groups)
    }

    /// Live memory before a move: all, and by group.
    fn live_before(&self, first: u32, has_groups: bool) -> Result<(Level, Vec<i128>)> {
        let table = self.table;
        let is_level = self.is_level();
        let older = table.born_in(0, first);
        let parts = self.parallelism.map(older, |part| {
            let mut level = Level::default();
            let mut amounts = vec![0_i128; if has_groups { self.group_count } else { 0 }];
            self.last_ends.for_each_live(table, part, first, self.is_cancelled, |allocation| {
                if !self.passing.has(allocation) {
                    return;
                }
                let (size_bytes, count) = (self.sizes().get(allocation), self.count(allocation));
                level.bytes += i128::from(size_bytes);
                level.count += count as i64;
                if is_level && has_groups {
                    amounts[self.group(allocation)] += self.unit(size_bytes, count);
                }
            })?;
            Ok((level, amounts))
        })?;
        let mut parts = parts.into_iter();
        let Some((mut level, mut amounts)) = parts.next() else { return Ok(Default::default()) };
        for (more, more_amounts) in parts {
            level = level.plus(more);
            amounts.iter_mut().zip(more_amounts).for_each(|(amount, more)| *amount += more);
        }
        Ok((level, amounts))
    }

    fn part(&self, bins: Range<usize>, wanted: &[u32], wants_most: bool) -> Result<Part> {
        let table = self.table;
        let is_level = self.is_level();
        let has_groups = wants_most || !wanted.is_empty();
        let group_count = if has_groups { self.group_count } else { 0 };
        let mut part = Part::new(bins.len(), wanted.len(), group_count, wants_most);
        let mut level = Level::default();
        let mut highest_bytes = i128::MIN;
        let mut touched: Vec<u32> = Vec::new();
        let mut batch = MoveBatch::new();
        let group_of = has_groups.then_some(self.group_of);
        for bin in bins {
            if (self.is_cancelled)() {
                return Err(Error::GivenUp);
            }
            let mut bin_moves = BinMoves::default();
            let mut most = level;
            if !is_level {
                touched.drain(..).for_each(|group| part.amounts[group as usize] = 0);
            }
            let mut first = self.borders[bin];
            let moves = &table.moves[first as usize..self.borders[bin + 1] as usize];
            for moves in moves.chunks(TOGETHER) {
                batch.fetch(
                    (table, self.sizes(), self.columns),
                    self.passing,
                    group_of,
                    (first as usize, moves),
                );
                let mut counted = batch.counted;
                while counted != 0 {
                    let place = counted.trailing_zeros() as usize;
                    counted &= counted - 1;
                    let (size_bytes, group) = (batch.sizes[place], batch.groups[place]);
                    let count = self.count(moves[place].allocation());
                    if moves[place].is_end() {
                        level.bytes -= i128::from(size_bytes);
                        level.count -= count as i64;
                        if table.is_free(moves[place]) {
                            bin_moves.free_bytes = bin_moves.free_bytes.saturating_add(size_bytes);
                            bin_moves.free_count += count;
                        }
                        if is_level && has_groups {
                            part.amounts[group as usize] -= self.unit(size_bytes, count);
                        }
                        continue;
                    }
                    level.bytes += i128::from(size_bytes);
                    level.count += count as i64;
                    bin_moves.alloc_bytes = bin_moves.alloc_bytes.saturating_add(size_bytes);
                    bin_moves.alloc_count += count;
                    if level.bytes > most.bytes {
                        most = level;
                    }
                    if level.bytes > highest_bytes {
                        highest_bytes = level.bytes;
                        part.highest = Some((level, first + place as u32));
                    }
                    if has_groups {
                        part.amounts[group as usize] += self.unit(size_bytes, count);
                        if !is_level || wants_most {
                            touched.push(group);
                        }
                    }
                }
                first += moves.len() as u32;
            }
            if wants_most {
                part.raise_most(&touched);
            }
            if is_level {
                touched.clear();
            }
            part.end_bin(wanted, level, most, &bin_moves);
        }
        Ok(part)
    }
}
