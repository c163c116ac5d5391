//! Queries of timelines.
//!
//! A query takes two passes: the allocations that are alive at the start, then the moves of the
//! time span. With many groups (stacks, frames), an additional pass finds those that are greatest
//! at the end of any bin.

use hashbrown::HashMap;
use heapr_query::engine::{Choice, Name};
use heapr_query::{Filter, Result, Span};

use crate::event_table::EventTable;
use crate::explorer::Explorer;
use crate::frame_number::FrameNumber;
use crate::site_table::Site;
use crate::timeline::{
    Series, SeriesKey, SiteGroups, Timeline, TimelineBy, TimelineQuery, TimelineVariances,
};
use crate::timeline_pass::TimelinePass;

/// Largest number of groups that are computed in one pass, after which the greatest are chosen.
const GROUPS_DRAWN_AT_ONCE: usize = 64;

/// Start of bin `bin`, which is the end of the previous bin.
fn bin_start(time: Span, bins: usize, bin: usize) -> u64 {
    let width = u128::from(time.to.saturating_sub(time.from));
    time.from + (width * bin as u128 / bins.max(1) as u128) as u64
}

impl Explorer {
    /// The timeline of the allocations that a filter selects; `None` without a table of events.
    ///
    /// # Errors
    /// The filter makes no sense, names what the trace does not have, or the call was cancelled.
    pub fn timeline(
        &self,
        query: &TimelineQuery,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Timeline>> {
        let Some(table) = self.table() else { return Ok(None) };
        let filter = Filter { range: None, at: None, allocation_type: None, ..query.filter.clone() };
        filter.check()?;
        let choice = Choice::new(&filter, self.trace().processes(), self.trace().threads())?;
        let groups =
            self.site_groups.get(&(query.cull.clone(), query.by), || self.groups_of_sites(table, query));
        let keys = &groups.keys;
        let passing = self.passing(table, &filter, &choice, is_cancelled)?;
        let bins = query.bins.max(1);
        let borders: Vec<u32> =
            (0..=bins).map(|bin| table.times.count_before(bin_start(query.time, bins, bin))).collect();
        let duration_ns = self.trace().duration_ns();
        let kept = self.kept(table, is_cancelled);
        let last_ends = kept.last_ends()?;
        let pass = TimelinePass {
            table,
            passing: &passing,
            last_ends,
            variances: None,
            columns: kept.columns(),
            group_of: &groups.group_of,
            borders: &borders,
            of: query.of,
            group_count: keys.len(),
            parallelism: self.parallelism,
            is_cancelled,
        };
        let has_series = query.by != TimelineBy::Nothing && query.series_max > 0;
        let mut candidates: Vec<u32> = (0..keys.len() as u32).collect();
        if has_series && candidates.len() > GROUPS_DRAWN_AT_ONCE {
            let most = pass.greatest()?;
            candidates.retain(|&group| most[group as usize] > 0);
            candidates.sort_by_key(|&group| (std::cmp::Reverse(most[group as usize]), group));
            candidates.truncate(query.series_max);
        }
        let (mut timeline, values) = pass.draw(if has_series { &candidates } else { &[] })?;
        timeline.peak.0 = timeline.peak.0.min(duration_ns);
        let mut found: Vec<(u32, Vec<u64>)> = candidates.into_iter().zip(values).collect();
        found.retain(|(_, values)| values.iter().any(|&value| value > 0));
        found.sort_by_key(|(_, values)| std::cmp::Reverse(values.iter().max().copied()));
        found.truncate(query.series_max);
        let (groups, values): (Vec<u32>, Vec<Vec<u64>>) = found.into_iter().unzip();
        let mut variances = vec![Vec::new(); groups.len()];
        if has_series {
            timeline.rest = rest(timeline.whole(query.of), &values);
        }
        if self.trace().is_sampled() {
            let drawn = variances_of(&pass, &groups, timeline.peak_end)?;
            timeline.variances = Some(Box::new(drawn.0));
            variances = drawn.1;
        }
        let series = groups.iter().zip(values).zip(variances);
        let series = series.map(|((&group, values), variances)| Series {
            key: keys[group as usize],
            values,
            variances,
        });
        timeline.series = series.collect();
        Ok(Some(timeline))
    }

    /// Groups of all sites.
    fn groups_of_sites(&self, table: &EventTable, query: &TimelineQuery) -> SiteGroups {
        let tree = self.tree();
        let left = self.left(&query.cull);
        let mut keys = Vec::new();
        let mut numbers: HashMap<GroupId, u32> = HashMap::new();
        let mut group = |site: &Site| {
            let culled = || left[tree.named(site.stack) as usize];
            let (id, key) = match query.by {
                TimelineBy::Nothing => (GroupId::Number(0), SeriesKey::Process(0)),
                TimelineBy::Processes => {
                    (GroupId::Number(site.process.0), SeriesKey::Process(site.process.0))
                }
                TimelineBy::Threads => (GroupId::Number(site.thread.0), SeriesKey::Thread(site.thread)),
                TimelineBy::Stacks => {
                    let stack = culled();
                    (GroupId::Number(stack), SeriesKey::Stack((site.stack.0, stack)))
                }
                TimelineBy::Frames => {
                    let frame = tree.frame(culled()).map(|frame| FrameNumber(frame.0));
                    (GroupId::Frame(frame), SeriesKey::Frame(frame))
                }
                TimelineBy::Images => {
                    let frame = tree.frame(culled());
                    let module = frame.and_then(|frame| tree.frames.module_name(frame));
                    let frame = frame.filter(|_| module.is_some()).map(|frame| FrameNumber(frame.0));
                    (GroupId::Module(module), SeriesKey::Image(frame))
                }
            };
            *numbers.entry(id).or_insert_with(|| {
                keys.push(key);
                keys.len() as u32 - 1
            })
        };
        let group_of = table.sites.iter().map(&mut group).collect();
        SiteGroups { group_of, keys }
    }
}

/// Variances of a timeline's curves, and of the series of groups. `peak_end`: move after the peak.
fn variances_of(
    pass: &TimelinePass<'_>,
    groups: &[u32],
    peak_end: u32,
) -> Result<(TimelineVariances, Vec<Vec<u64>>)> {
    let of = pass.of.in_bytes();
    let variances =
        [pass.table.variance_column(|(bytes, _)| bytes), pass.table.variance_column(|(_, count)| count)];
    let [by_bytes, by_count] = variances.each_ref().map(|column| TimelinePass {
        variances: Some(column),
        columns: None,
        of,
        ..*pass
    });
    let (of_bytes, series_of_bytes) = by_bytes.draw(groups)?;
    let (of_count, series_of_count) = by_count.draw(groups)?;
    let (whole, series) = match pass.of.is_bytes() {
        true => (of_bytes.whole(of), series_of_bytes),
        false => (of_count.whole(of), series_of_count),
    };
    let variances = TimelineVariances {
        rest: if groups.is_empty() { Vec::new() } else { rest(whole, &series) },
        peak: (by_bytes.live_bytes_before(peak_end)?, by_count.live_bytes_before(peak_end)?),
        live_bytes: of_bytes.live_bytes,
        live_count: of_count.live_bytes,
        most_bytes: of_bytes.most_bytes,
        alloc_bytes: of_bytes.alloc_bytes,
        alloc_count: of_count.alloc_bytes,
        free_count: of_count.free_bytes,
    };
    Ok((variances, series))
}

/// Whole minus all series, for each bin.
fn rest(whole: &[u64], series: &[Vec<u64>]) -> Vec<u64> {
    let left = |(bin, &whole): (usize, &u64)| {
        series.iter().fold(whole, |rest, values| rest.saturating_sub(values[bin]))
    };
    whole.iter().enumerate().map(left).collect()
}

/// Identity of the group of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum GroupId {
    Number(u32),
    Frame(Option<FrameNumber>),
    Module(Option<Name>),
}
