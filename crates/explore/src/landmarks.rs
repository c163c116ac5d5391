//! Levels of live memory at regular positions. With them the peak of a range requires only a few
//! blocks of moves.
//!
//! The peak of a range counts allocations within the range. At any move of it
//!
//! ```text
//! own(t) = live(t) − older(t)        live: of the whole trace; older: blocks live at the range's start and still live
//! ```
//! The marks hold `live` at the start of each block, and its highest point inside. `older` only
//! falls. It is known at the borders of the blocks, once the allocations that are alive at the
//! range's start were examined. So in a block
//!
//! ```text
//! highest − older at its start  <=  highest own  <=  highest − older at its end
//! ```
//! and only blocks whose upper bound reaches the greatest lower bound can hold the peak: usually
//! one or two. Their moves are examined one by one, in order, so that the answer equals that of a
//! pass over all moves.

use std::ops::Range;

use heapr_query::engine::Choice;
use heapr_query::{Error, Result, Span};
use heapr_trace::{HeapId, ProcessIndex};

use crate::event_table::EventTable;
use crate::last_ends::LastEnds;
use crate::move_columns::MoveColumns;
use crate::parallelism::Parallelism;
use crate::peak::{HeapPeaks, Peak};

/// Largest number of marks: 32 MB. With many heaps the blocks are larger instead.
const MARKS_MAX: usize = 1 << 20;

/// Live bytes and blocks; wide enough for any values of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Level {
    bytes: i128,
    count: i64,
}

impl Level {
    #[inline(always)]
    fn add(&mut self, size_bytes: u64) {
        self.bytes += i128::from(size_bytes);
        self.count += 1;
    }

    #[inline(always)]
    fn remove(&mut self, size_bytes: u64) {
        self.bytes -= i128::from(size_bytes);
        self.count -= 1;
    }

    fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, count: self.count + other.count }
    }

    fn minus(self, other: Self) -> Self {
        Self { bytes: self.bytes - other.bytes, count: self.count - other.count }
    }
}

/// Levels of a block of moves, for a group.
#[derive(Debug, Clone, Copy)]
struct Mark {
    before: Level,
    /// Most live bytes after a birth in the block; `i128::MIN` without births.
    highest: i128,
}

/// Marks for the chosen processes, heaps, threads and sizes. Group 0 is all of them; the other
/// groups are the heaps, if there are several.
#[derive(Debug)]
pub(crate) struct Landmarks {
    /// Number of moves per block.
    block: usize,
    heaps: Vec<(ProcessIndex, HeapId)>,
    /// Heap of each site.
    heap_of: Vec<u32>,
    /// Whether each site is chosen; `None` for all.
    is_chosen: Option<Vec<bool>>,
    size: Option<Span>,
    /// Marks by block, then by group.
    marks: Vec<Mark>,
}

/// Inputs of the search for a peak.
pub(crate) struct PeakQuery<'a> {
    pub(crate) table: &'a EventTable,
    pub(crate) last_ends: &'a LastEnds,
    /// Range of sequence numbers.
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// For a group: the level at the start of a range, and the part of it that ends in each block.
#[derive(Debug, Clone, Default)]
struct Older {
    level: Level,
    /// Level that ends in each block of the range.
    ended: Vec<Level>,
}

impl Landmarks {
    pub(crate) fn new(
        (table, columns): (&EventTable, Option<&MoveColumns>),
        choice: &Choice,
        parallelism: Parallelism,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self> {
        let mut heaps = Vec::new();
        let mut numbers = hashbrown::HashMap::new();
        let number_of = table.sites.iter().map(|site| {
            *numbers.entry((site.process, site.heap)).or_insert_with(|| {
                heaps.push((site.process, site.heap));
                heaps.len() as u32 - 1
            })
        });
        let heap_of = number_of.collect();
        let is_chosen = (!choice.is_every_origin())
            .then(|| table.sites.iter().map(|site| site.is_chosen(choice)).collect::<Vec<bool>>());
        let mut made = Self {
            block: parallelism.block.max(1),
            heaps,
            heap_of,
            is_chosen,
            size: choice.size,
            marks: Vec::new(),
        };
        let (moves, groups) = (table.moves.len(), made.group_count());
        made.block = made.block.max(moves.saturating_mul(groups).div_ceil(MARKS_MAX));
        let parts = parallelism.each().map(0..moves.div_ceil(made.block), |blocks| {
            let mut marks = Vec::with_capacity(blocks.len() * groups);
            let mut levels = vec![Level::default(); groups];
            for block in blocks {
                if is_cancelled() {
                    return Err(Error::GivenUp);
                }
                let first = marks.len();
                marks.extend(levels.iter().map(|&before| Mark { before, highest: i128::MIN }));
                let marks = &mut marks[first..];
                made.for_each_move(
                    (table, columns),
                    made.moves_of(block, moves),
                    0,
                    |_, group, size_bytes, is_end| {
                        step(&mut levels[0], &mut marks[0], size_bytes, is_end);
                        if groups > 1 {
                            step(&mut levels[group], &mut marks[group], size_bytes, is_end);
                        }
                    },
                );
            }
            Ok((marks, levels))
        })?;
        // Each part counted from zero.
        let mut base = vec![Level::default(); groups];
        for (marks, levels) in parts {
            made.marks.reserve(marks.len());
            for (number, mark) in marks.into_iter().enumerate() {
                let base = base[number % groups];
                let highest = mark.highest.checked_add(base.bytes).filter(|_| mark.highest != i128::MIN);
                made.marks
                    .push(Mark { before: mark.before.plus(base), highest: highest.unwrap_or(i128::MIN) });
            }
            base.iter_mut().zip(levels).for_each(|(base, level)| *base = base.plus(level));
        }
        Ok(made)
    }

    /// Number of groups. With one heap, its peak equals that of the whole.
    fn group_count(&self) -> usize {
        if self.heaps.len() > 1 { 1 + self.heaps.len() } else { 1 }
    }

    fn moves_of(&self, block: usize, moves: usize) -> Range<usize> {
        block * self.block..((block + 1) * self.block).min(moves)
    }

    /// The group of a site's heap, if it is chosen.
    #[inline(always)]
    fn group(&self, site: usize) -> Option<usize> {
        let is_chosen = self.is_chosen.as_ref().is_none_or(|chosen| chosen[site]);
        is_chosen.then(|| self.heap_of[site] as usize + 1)
    }

    #[inline(always)]
    fn has_size(&self, size_bytes: u64) -> bool {
        self.size.is_none_or(|size| size.contains(size_bytes))
    }

    /// Passes the moves of chosen allocations from number `first` on to `visit`: sequence, group of
    /// the heap, size, and whether the move is an end.
    #[inline(always)]
    fn for_each_move(
        &self,
        (table, columns): (&EventTable, Option<&MoveColumns>),
        moves: Range<usize>,
        first: usize,
        mut visit: impl FnMut(usize, usize, u64, bool),
    ) {
        let is_plain = self.is_chosen.is_none() && self.heaps.len() <= 1;
        for sequence in moves {
            let one = table.moves[sequence];
            let allocation = one.allocation();
            if allocation < first {
                continue;
            }
            // Without columns the loads of site and size are random: the site is loaded only if
            // needed.
            let site = || columns.map_or_else(|| table.site_of[allocation], |columns| columns.site(sequence));
            let group = if is_plain { Some(1) } else { self.group(site() as usize) };
            if let Some(group) = group {
                let size_bytes = match columns {
                    Some(columns) => columns.size_bytes(table, sequence, allocation),
                    None => table.size_bytes(allocation),
                };
                if self.has_size(size_bytes) {
                    visit(sequence, group, size_bytes, one.is_end());
                }
            }
        }
    }

    /// The peak of a range, and those of the heaps.
    pub(crate) fn peak(&self, query: &PeakQuery<'_>) -> Result<(Peak, HeapPeaks)> {
        let mut heaps: HeapPeaks =
            self.heaps.iter().map(|&(process, heap)| (process, heap, Peak::default())).collect();
        if query.from >= query.to {
            return Ok((Peak::default(), heaps));
        }
        let older = self.older(query)?;
        let peak = self.peak_of(query, 0, &older[0])?;
        for (number, (.., heap_peak)) in heaps.iter_mut().enumerate() {
            *heap_peak = match older.get(number + 1) {
                Some(older) => self.peak_of(query, number + 1, older)?,
                None => peak,
            };
        }
        Ok((peak, heaps))
    }

    /// Allocations that are live where a range begins, by group.
    fn older(&self, query: &PeakQuery<'_>) -> Result<Vec<Older>> {
        let (table, groups) = (query.table, self.group_count());
        let first_block = query.from as usize / self.block;
        let last_block = (query.to as usize - 1) / self.block;
        let ended = vec![Level::default(); last_block + 1 - first_block];
        let mut older = vec![Older { level: Level::default(), ended }; groups];
        let before = table.born_in(0, query.from);
        let visit = |allocation: usize| {
            let Some(group) = self.group(table.site_of[allocation] as usize) else { return };
            let size_bytes = table.size_bytes(allocation);
            if !self.has_size(size_bytes) {
                return;
            }
            let end = table.last_move(allocation);
            for group in [0, group].into_iter().take(if groups > 1 { 2 } else { 1 }) {
                older[group].level.add(size_bytes);
                if end < query.to {
                    older[group].ended[end as usize / self.block - first_block].add(size_bytes);
                }
            }
        };
        query.last_ends.for_each_live(table, before, query.from, query.is_cancelled, visit)?;
        Ok(older)
    }

    fn peak_of(&self, query: &PeakQuery<'_>, group: usize, older: &Older) -> Result<Peak> {
        let table = query.table;
        let (from, to) = (query.from as usize, query.to as usize);
        let first_block = from / self.block;
        let first_allocation = table.born_in(0, query.from).end;
        let mark = |place: usize| self.marks[(first_block + place) * self.group_count() + group];
        // A block that the range cuts has no bounds.
        let is_whole = |place: usize| {
            let moves = self.moves_of(first_block + place, table.moves.len());
            from <= moves.start && moves.end <= to
        };
        let mut least = 0;
        let mut at_start = older.level;
        for (place, ended) in older.ended.iter().enumerate() {
            if is_whole(place) {
                least = least.max(mark(place).highest.saturating_sub(at_start.bytes));
            }
            at_start = at_start.minus(*ended);
        }
        let mut peak = Peak::default();
        let mut at_start = older.level;
        for (place, ended) in older.ended.iter().enumerate() {
            let at_end = at_start.minus(*ended);
            let is_whole = is_whole(place);
            let most = mark(place).highest.saturating_sub(at_end.bytes);
            if !is_whole || (most >= least && most > i128::from(peak.bytes)) {
                if (query.is_cancelled)() {
                    return Err(Error::GivenUp);
                }
                // At the range's start no allocation of the range is live.
                let own = if place == 0 { Level::default() } else { mark(place).before.minus(at_start) };
                let moves = self.moves_of(first_block + place, table.moves.len());
                self.look(
                    query,
                    moves.start.max(from)..moves.end.min(to),
                    (group, first_allocation),
                    own,
                    &mut peak,
                );
            }
            at_start = at_end;
        }
        peak.find_time(table);
        Ok(peak)
    }

    /// Examines moves, given the range's own level at their start.
    fn look(
        &self,
        query: &PeakQuery<'_>,
        moves: Range<usize>,
        (wanted, first_allocation): (usize, usize),
        mut own: Level,
        peak: &mut Peak,
    ) {
        self.for_each_move(
            (query.table, None),
            moves,
            first_allocation,
            |sequence, group, size_bytes, is_end| {
                if wanted != 0 && group != wanted {
                    return;
                }
                if is_end {
                    own.remove(size_bytes);
                    return;
                }
                own.add(size_bytes);
                if own.bytes > i128::from(peak.bytes) {
                    peak.reach(own.bytes, own.count, sequence as u32);
                }
            },
        );
    }
}

#[inline(always)]
fn step(level: &mut Level, mark: &mut Mark, size_bytes: u64, is_end: bool) {
    if is_end {
        level.remove(size_bytes);
    } else {
        level.add(size_bytes);
        mark.highest = mark.highest.max(level.bytes);
    }
}
