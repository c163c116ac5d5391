//! The course of live memory over time, in bins.
//!
//! Two passes: the allocations that are alive at the start, then the moves of the time that is drawn. Where there are many
//! groups (stacks, frames), a pass before finds the few that are greatest at the end of any bin.

use hashbrown::HashMap;
use heapr_trace::ThreadIndex;

use super::event_table::EventTable;
use super::explorer::{Explorer, FrameNumber};
use super::site_table::Site;
use crate::choice::Choice;
use crate::cull_list::CullList;
use crate::culling::Culling;
use crate::error::{Error, Result};
use crate::filter::{Filter, Span};
use crate::name_table::Name;

/// What the series of a course are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CourseBy {
    /// There are none.
    Nothing,
    /// Processes.
    Processes,
    /// Allocating threads.
    Threads,
    /// Modules of the innermost frames, after culling.
    Images,
    /// Innermost frames, after culling.
    Frames,
    /// Stacks, after culling.
    Stacks,
}

/// What the series of a course show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CourseOf {
    /// Live bytes at the end of each bin.
    LiveBytes,
    /// Live allocations at the end of each bin.
    LiveCount,
    /// Bytes allocated in each bin.
    AllocBytes,
    /// Allocations made in each bin.
    AllocCount,
}

/// What is drawn.
#[derive(Debug, Clone)]
pub struct CourseQuery {
    /// Which allocations count. Its range, moment and type do not.
    pub filter: Filter,
    /// For the series.
    pub cull: CullList,
    /// The time that is drawn.
    pub time: Span,
    /// Number of bins.
    pub bins: usize,
    /// What the series are.
    pub by: CourseBy,
    /// Most series.
    pub series_max: usize,
    /// What the series show.
    pub of: CourseOf,
}

/// What a series is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SeriesKey {
    /// A process, by its index.
    Process(u32),
    /// A thread.
    Thread(ThreadIndex),
    /// The module of a frame; `None`: code outside all modules, or no stack.
    Image(Option<FrameNumber>),
    /// A frame; `None`: no stack.
    Frame(Option<FrameNumber>),
    /// A stack: key for [`Explorer::stack_frames`].
    Stack((u32, u32)),
}

/// One series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Of what.
    pub key: SeriesKey,
    /// By bin.
    pub values: Vec<u64>,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Course {
    /// At the end of each bin.
    pub live_bytes: Vec<u64>,
    /// At the end of each bin.
    pub live_count: Vec<u64>,
    /// The most live bytes at any moment of each bin.
    pub most_bytes: Vec<u64>,
    /// In each bin.
    pub alloc_bytes: Vec<u64>,
    /// In each bin.
    pub alloc_count: Vec<u64>,
    /// In each bin.
    pub free_count: Vec<u64>,
    /// The greatest, by their largest values.
    pub series: Vec<Series>,
    /// All others together.
    pub rest: Vec<u64>,
    /// The most live bytes in the time that is drawn: when first, bytes, count.
    pub peak: (u64, u64, u64),
}

/// Up to this many groups are drawn in one pass, and the greatest chosen then.
const GROUPS_DRAWN_AT_ONCE: usize = 64;
/// Allocations between two questions whether it was given up.
const CANCEL_INTERVAL: usize = 1 << 16;
/// No group.
const NONE: u32 = u32::MAX;

/// Start of bin `bin`: the end of the one before.
fn bin_start(time: Span, bins: usize, bin: usize) -> u64 {
    let width = u128::from(time.to.saturating_sub(time.from));
    time.from + (width * bin as u128 / bins.max(1) as u128) as u64
}

/// The allocations that count.
struct Passing<'a> {
    table: &'a EventTable,
    filter: &'a Filter,
    /// By site: number of its group, [`NONE`] if the site does not count.
    group_of: Vec<u32>,
    is_plain: bool,
    duration_ns: u64,
}

impl Passing<'_> {
    #[inline(always)]
    fn group(&self, allocation: usize) -> Option<u32> {
        let group = self.group_of[self.table.site_of[allocation] as usize];
        (group != NONE && (self.is_plain || self.passes(allocation))).then_some(group)
    }

    fn passes(&self, allocation: usize) -> bool {
        let (table, filter) = (self.table, self.filter);
        let end = table.ends[allocation].sequence();
        let lifetime_ns = || {
            let is_ended = end < table.move_count();
            let free_ns = if is_ended { table.times.get(end) } else { self.duration_ns };
            free_ns.saturating_sub(table.times.get(table.births[allocation]))
        };
        filter.size.is_none_or(|size| size.contains(table.size_bytes(allocation)))
            && filter.lifetime.is_none_or(|lifetime| lifetime.contains(lifetime_ns()))
            && (!filter.is_temporary_only || table.is_temporary(allocation, 0))
    }
}

impl Explorer {
    /// The course of what a filter chooses; nothing if there is no table of events.
    ///
    /// # Errors
    /// The filter can't be meant, names what the trace does not have, or it was given up.
    pub fn course(&self, query: &CourseQuery, is_cancelled: &dyn Fn() -> bool) -> Result<Option<Course>> {
        let Some(table) = self.table() else { return Ok(None) };
        let filter = Filter { range: None, at: None, allocation_type: None, ..query.filter.clone() };
        filter.check()?;
        let choice = Choice::new(&filter, self.trace().processes(), self.trace().threads())?;
        let (group_of, keys) = self.site_groups(table, &filter, &choice, query);
        let passing = Passing {
            table,
            filter: &filter,
            group_of,
            is_plain: filter.size.is_none() && filter.lifetime.is_none() && !filter.is_temporary_only,
            duration_ns: self.trace().duration_ns(),
        };
        let bins = query.bins.max(1);
        let borders: Vec<u32> =
            (0..=bins).map(|bin| table.times.count_before(bin_start(query.time, bins, bin))).collect();
        let duration_ns = passing.duration_ns;
        let pen = Pen { passing: &passing, borders: &borders, of: query.of, is_cancelled };
        let has_series = query.by != CourseBy::Nothing && query.series_max > 0;
        let mut candidates: Vec<u32> = (0..keys.len() as u32).collect();
        if has_series && candidates.len() > GROUPS_DRAWN_AT_ONCE {
            let mut most = vec![0; keys.len()];
            pen.draw(&[], Some(&mut most))?;
            candidates.retain(|&group| most[group as usize] > 0);
            candidates.sort_by_key(|&group| (std::cmp::Reverse(most[group as usize]), group));
            candidates.truncate(query.series_max);
        }
        let (mut course, values) = pen.draw(if has_series { &candidates } else { &[] }, None)?;
        course.peak.0 = course.peak.0.min(duration_ns);
        if !has_series {
            return Ok(Some(course));
        }
        let mut series: Vec<Series> = candidates
            .iter()
            .zip(values)
            .map(|(&group, values)| Series { key: keys[group as usize], values })
            .filter(|series| series.values.iter().any(|&value| value > 0))
            .collect();
        series.sort_by_key(|series| std::cmp::Reverse(series.values.iter().max().copied()));
        series.truncate(query.series_max);
        let whole = match query.of {
            CourseOf::LiveBytes => &course.live_bytes,
            CourseOf::LiveCount => &course.live_count,
            CourseOf::AllocBytes => &course.alloc_bytes,
            CourseOf::AllocCount => &course.alloc_count,
        };
        let rest = |(bin, &whole): (usize, &u64)| {
            series.iter().fold(whole, |rest, series| rest.saturating_sub(series.values[bin]))
        };
        course.rest = whole.iter().enumerate().map(rest).collect();
        course.series = series;
        Ok(Some(course))
    }

    /// By site its group, and what the groups are.
    fn site_groups(
        &self,
        table: &EventTable,
        filter: &Filter,
        choice: &Choice,
        query: &CourseQuery,
    ) -> (Vec<u32>, Vec<SeriesKey>) {
        let has_required = self.has_required(filter);
        let tree = self.tree();
        let mut culling = Culling::new(tree, &query.cull);
        let mut keys = Vec::new();
        let mut numbers: HashMap<GroupId, u32> = HashMap::new();
        let mut group = |site: &Site| {
            let is_required = |has: &Vec<bool>| has.get(site.stack.0 as usize).copied().unwrap_or(false);
            if !site.is_chosen(choice) || !has_required.as_ref().is_none_or(is_required) {
                return NONE;
            }
            let mut culled = || culling.cull(tree.named(site.stack));
            let (id, key) = match query.by {
                CourseBy::Nothing => (GroupId::Number(0), SeriesKey::Process(0)),
                CourseBy::Processes => (GroupId::Number(site.process.0), SeriesKey::Process(site.process.0)),
                CourseBy::Threads => (GroupId::Number(site.thread.0), SeriesKey::Thread(site.thread)),
                CourseBy::Stacks => {
                    let stack = culled();
                    (GroupId::Number(stack), SeriesKey::Stack((site.stack.0, stack)))
                }
                CourseBy::Frames => {
                    let frame = tree.frame(culled()).map(|frame| FrameNumber(frame.0));
                    (GroupId::Frame(frame), SeriesKey::Frame(frame))
                }
                CourseBy::Images => {
                    let frame = tree.frame(culled());
                    let module = frame.and_then(|frame| tree.frames.key(frame).module);
                    let frame = frame.filter(|_| module.is_some()).map(|frame| FrameNumber(frame.0));
                    (GroupId::Module(module), SeriesKey::Image(frame))
                }
            };
            *numbers.entry(id).or_insert_with(|| {
                keys.push(key);
                keys.len() as u32 - 1
            })
        };
        (table.sites.iter().map(&mut group).collect(), keys)
    }
}

/// What two sites of the same group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum GroupId {
    Number(u32),
    Frame(Option<FrameNumber>),
    Module(Option<Name>),
}

/// Draws courses: each time a pass.
struct Pen<'a> {
    passing: &'a Passing<'a>,
    /// Sequence numbers at which the bins begin, and the end of the last.
    borders: &'a [u32],
    of: CourseOf,
    is_cancelled: &'a dyn Fn() -> bool,
}

impl Pen<'_> {
    /// The whole course, and the values of some groups by bin. `most`: by group, set to its greatest value at the end of a bin.
    fn draw(&self, wanted: &[u32], mut most: Option<&mut Vec<u64>>) -> Result<(Course, Vec<Vec<u64>>)> {
        let table = self.passing.table;
        let bins = self.borders.len() - 1;
        let group_count = self.passing.group_of.iter().filter(|&&group| group != NONE).max();
        let mut amounts = vec![0_u64; group_count.map_or(0, |&last| last as usize + 1)];
        let is_level = matches!(self.of, CourseOf::LiveBytes | CourseOf::LiveCount);
        let is_bytes = matches!(self.of, CourseOf::LiveBytes | CourseOf::AllocBytes);
        let unit = |size_bytes: u64| if is_bytes { size_bytes } else { 1 };
        let (mut live_bytes, mut live_count) = (0_u64, 0_u64);
        for allocation in table.born_in(0, self.borders[0]) {
            if allocation.is_multiple_of(CANCEL_INTERVAL) && (self.is_cancelled)() {
                return Err(Error::GivenUp);
            }
            if table.ends[allocation].sequence() < self.borders[0] {
                continue;
            }
            let Some(group) = self.passing.group(allocation) else { continue };
            let size_bytes = table.size_bytes(allocation);
            live_bytes = live_bytes.saturating_add(size_bytes);
            live_count += 1;
            if is_level {
                let amount = &mut amounts[group as usize];
                *amount = amount.saturating_add(unit(size_bytes));
            }
        }
        let mut course = Course { peak: (0, live_bytes, live_count), ..Course::default() };
        let mut peak_sequence = None;
        let mut values = vec![Vec::with_capacity(bins); wanted.len()];
        if let Some(most) = most.as_deref_mut() {
            most.iter_mut().zip(&amounts).for_each(|(most, &amount)| *most = amount);
        }
        let mut touched: Vec<u32> = Vec::new();
        for bin in 0..bins {
            if (self.is_cancelled)() {
                return Err(Error::GivenUp);
            }
            let (mut alloc_bytes, mut alloc_count, mut free_count) = (0_u64, 0, 0);
            let mut most_bytes = live_bytes;
            if !is_level {
                touched.drain(..).for_each(|group| amounts[group as usize] = 0);
            }
            for sequence in self.borders[bin]..self.borders[bin + 1] {
                let one = table.moves[sequence as usize];
                let allocation = one.allocation();
                let Some(group) = self.passing.group(allocation) else { continue };
                let size_bytes = table.size_bytes(allocation);
                let amount = &mut amounts[group as usize];
                if one.is_end() {
                    live_bytes = live_bytes.saturating_sub(size_bytes);
                    live_count = live_count.saturating_sub(1);
                    free_count += 1;
                    if is_level {
                        *amount = amount.saturating_sub(unit(size_bytes));
                    }
                    continue;
                }
                live_bytes = live_bytes.saturating_add(size_bytes);
                live_count += 1;
                alloc_bytes += size_bytes;
                alloc_count += 1;
                most_bytes = most_bytes.max(live_bytes);
                if live_bytes > course.peak.1 {
                    course.peak = (0, live_bytes, live_count);
                    peak_sequence = Some(sequence);
                }
                *amount = amount.saturating_add(unit(size_bytes));
                if !is_level || most.is_some() {
                    touched.push(group);
                }
            }
            if let Some(most) = most.as_deref_mut() {
                // Only what grew in the bin can have grown beyond its greatest.
                for &group in &touched {
                    let known = &mut most[group as usize];
                    *known = (*known).max(amounts[group as usize]);
                }
            }
            if is_level {
                touched.clear();
            }
            for (series, &group) in values.iter_mut().zip(wanted) {
                series.push(amounts[group as usize]);
            }
            course.live_bytes.push(live_bytes);
            course.live_count.push(live_count);
            course.most_bytes.push(most_bytes);
            course.alloc_bytes.push(alloc_bytes);
            course.alloc_count.push(alloc_count);
            course.free_count.push(free_count);
        }
        course.peak.0 = match (peak_sequence, self.borders[0]) {
            (Some(sequence), _) => table.times.get(sequence),
            (None, 0) => 0,
            (None, first) => table.times.get(first - 1),
        };
        Ok((course, values))
    }
}
