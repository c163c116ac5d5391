//! A trace that many queries are put to.

use std::sync::{Arc, OnceLock};

use heapr_query::engine::{
    Choice, CodeTable, Culled, Culling, FrameId, GroupKey, NamedStack, Replay, RowSource, RowSums, Rows,
    SymbolTree, frames_of_group, is_without_events,
};
use heapr_query::{
    Action, CullList, Error, Filter, FramePattern, FrameView, Functions, Group, GroupBy, HeapRow,
    HistogramOf, Metric, Moment, Progress, Query, Ranking, Result, StackGroups, SymbolSource,
};
use heapr_trace::{Damage, LanguageFrames, StackIndex, Summary, Trace};

use crate::allocation_set::AllocationSet;
use crate::event_table::{EventTable, TableLimit};
use crate::frame_number::FrameNumber;
use crate::kept_sums::KeptSums;
use crate::parallelism::Parallelism;
use crate::recent_results::RecentResults;
use crate::row_plan::RowPlan;
use crate::scan::Scan;
use crate::selection::Selection;
use crate::site_sums::FoundSums;
use crate::table_builder::GrowingTable;
use crate::timeline::{SiteGroups, TimelineBy};

/// What a selection must be able to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Found {
    /// Rankings of threads.
    pub threads: bool,
    /// Histograms.
    pub histograms: bool,
}

/// See the module. All methods may be called by several threads at once.
#[derive(Debug)]
pub struct Explorer {
    trace: Arc<Trace>,
    /// Frames of one function on several lines are several.
    tells_lines: bool,
    /// Which frames of stacks with frames of a language are shown; `None`: those that the trace
    /// says.
    shown: Option<LanguageFrames>,
    /// Explorers of the same stacks share it.
    tree: OnceLock<Arc<SymbolTree>>,
    /// `None` inside: there are too many events for a table.
    /// Explorers of the same events share it, and what is found out of it.
    table: Arc<OnceLock<Option<EventTable>>>,
    /// The file's own.
    summary: OnceLock<Option<Summary>>,
    /// Where the file has none: what it would be, and what of the events could not be used.
    replayed_summary: OnceLock<(Summary, Vec<Damage>)>,
    pub(crate) parallelism: Parallelism,
    /// By cull list: of each stack what is left of it.
    left: RecentResults<CullList, Vec<Node>>,
    /// By cull list and kind of series: groups of the table's sites.
    pub(crate) site_groups: RecentResults<(CullList, TimelineBy), SiteGroups>,
    pub(crate) plans: Arc<OnceLock<[RowPlan; 2]>>,
    /// Of the table.
    pub(crate) sums: Arc<KeptSums>,
    /// By filter without range, moment and type.
    pub(crate) passing: RecentResults<Filter, AllocationSet>,
    /// By filter of nothing but frames which stacks of the file it lets pass.
    pub(crate) required: RecentResults<Filter, Vec<bool>>,
}

/// Whether a filter asks for nothing that a summary does not hold.
fn is_plain(filter: &Filter) -> bool {
    *filter == filter.of_frames()
}

impl Explorer {
    /// Names and events are not read yet.
    #[must_use]
    pub fn new(trace: Arc<Trace>) -> Self {
        Self::with_parallelism(trace, Parallelism::default())
    }

    /// As [`Explorer::new`]; scans are spread over threads.
    #[must_use]
    pub fn with_parallelism(trace: Arc<Trace>, parallelism: Parallelism) -> Self {
        Self {
            parallelism,
            left: RecentResults::default(),
            site_groups: RecentResults::default(),
            plans: Arc::default(),
            sums: Arc::default(),
            passing: RecentResults::default(),
            required: RecentResults::default(),
            trace,
            tells_lines: false,
            shown: None,
            tree: OnceLock::new(),
            table: Arc::default(),
            summary: OnceLock::new(),
            replayed_summary: OnceLock::new(),
        }
    }

    /// One of the same trace that tells the lines of a function apart, named at once. It has no
    /// events: it is for what this one has selected.
    #[must_use]
    pub fn telling_lines(&self, symbols: &mut dyn SymbolSource) -> Self {
        let trace = Arc::clone(&self.trace);
        let explorer =
            Self { tells_lines: true, shown: self.shown, ..Self::with_parallelism(trace, self.parallelism) };
        explorer.name(symbols);
        explorer
    }

    /// One of the same events that shows other frames of stacks with frames of a language. It has
    /// no names yet.
    #[must_use]
    pub fn showing(&self, shown: LanguageFrames) -> Self {
        Self {
            shown: Some(shown),
            table: Arc::clone(&self.table),
            plans: Arc::clone(&self.plans),
            sums: Arc::clone(&self.sums),
            ..Self::with_parallelism(Arc::clone(&self.trace), self.parallelism)
        }
    }

    /// Which frames of stacks with frames of a language are shown.
    #[must_use]
    pub fn language_frames(&self) -> LanguageFrames {
        self.shown.unwrap_or_else(|| self.trace.language_frames())
    }

    /// The trace.
    #[must_use]
    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// Names all stacks. Queries on stacks before that see no names.
    pub fn name(&self, symbols: &mut dyn SymbolSource) {
        self.tree.get_or_init(|| {
            let wanted = vec![true; self.trace.stacks().len()];
            let codes = self.codes();
            Arc::new(SymbolTree::build(&*self.trace, codes, symbols, wanted))
        });
    }

    fn codes(&self) -> CodeTable {
        CodeTable::new(self.trace.mappings()).telling_lines(self.tells_lines).showing(self.shown)
    }

    /// Takes the names of an earlier state of the same file and names the stacks that were added
    /// since; `false` if there are none, or if there are other mappings now, which may give
    /// other names to the same addresses.
    pub fn adopt_names(&self, earlier: &Self, symbols: &mut dyn SymbolSource) -> bool {
        let Some(tree) = earlier.tree.get() else { return false };
        let code = |trace: &Trace| (trace.mappings().len(), trace.modules().len());
        let (now, before) = (self.trace.stacks().len(), earlier.trace.stacks().len());
        if code(&self.trace) != code(&earlier.trace) || now < before {
            return false;
        }
        let tree = if now == before { Arc::clone(tree) } else { Arc::new(tree.grown(&*self.trace, symbols)) };
        self.tree.set(tree).is_ok()
    }

    /// As [`Explorer::read_events`] of a file that is still written: only what was added is read.
    ///
    /// # Errors
    /// The trace cannot be read, or it was given up.
    pub fn read_added_events(
        &self,
        growing: &mut GrowingTable,
        limit: TableLimit,
        progress: &mut Progress<'_>,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        if self.table.get().is_none() {
            let _ = self.table.set(growing.read(
                &self.trace,
                (limit, self.parallelism),
                progress,
                is_cancelled,
            )?);
        }
        Ok(())
    }

    /// Reads all events into a table, if there are no more than the limit allows; else queries
    /// replay them.
    ///
    /// # Errors
    /// The trace cannot be read, or it was given up.
    pub fn read_events(
        &self,
        limit: TableLimit,
        progress: &mut Progress<'_>,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        if self.table.get().is_none() {
            let table = EventTable::build(&self.trace, (limit, self.parallelism), progress, is_cancelled)?;
            // Another thread may have been faster; its table is the same.
            let _ = self.table.set(table);
        }
        Ok(())
    }

    /// The table, once it was made; none of a trace that was recorded without events.
    #[must_use]
    pub fn table(&self) -> Option<&EventTable> {
        self.table.get()?.as_ref().filter(|_| !self.is_without_events())
    }

    /// Whether the trace was recorded without events: it has totals and snapshots only.
    #[must_use]
    pub fn is_without_events(&self) -> bool {
        is_without_events(&self.trace)
    }

    /// Chunks of events that could not be used, as far as is known.
    #[must_use]
    pub fn event_damage(&self) -> &[Damage] {
        self.table().map_or(&[], |table| &table.damage)
    }

    /// Whether a filter is answered from the file's summary, without events.
    #[must_use]
    pub fn needs_no_events(&self, filter: &Filter, found: Found) -> bool {
        is_plain(filter) && found == Found::default() && self.summary.get_or_init(|| self.stored()).is_some()
    }

    /// The file's own summary, if it has a whole one.
    fn stored(&self) -> Option<Summary> {
        heapr_query::written_summary(&self.trace).ok().flatten()?;
        self.trace.summary().ok().flatten()
    }

    /// The file's summary, or what it would be.
    fn summary(&self, damage: &mut Vec<Damage>) -> Result<&Summary> {
        if let Some(summary) = self.summary.get_or_init(|| self.stored()) {
            return Ok(summary);
        }
        // A replay would find nothing, and say so in zeros.
        if self.is_without_events() {
            return Err(Error::NoEventsNoSummary);
        }
        if let Some((summary, known)) = self.replayed_summary.get() {
            damage.clone_from(known);
            return Ok(summary);
        }
        let progress: &mut Progress<'_> = &mut |_, _| {};
        let mut replay = Replay::new(&self.trace, progress);
        let summary = replay.summary()?;
        damage.clone_from(&replay.damage);
        Ok(&self.replayed_summary.get_or_init(|| (summary, replay.damage)).0)
    }

    /// All stacks by names; without any, where none were looked for yet.
    pub fn tree(&self) -> &SymbolTree {
        self.tree.get_or_init(|| {
            let wanted = vec![true; self.trace.stacks().len()];
            let codes = self.codes();
            let no_symbols = &mut heapr_query::NoSymbols;
            Arc::new(SymbolTree::build(&*self.trace, codes, no_symbols, wanted))
        })
    }

    /// Adds up what a filter chooses.
    ///
    /// # Errors
    /// The filter can't be meant, names what the trace does not have, the trace cannot be read, or
    /// it was given up.
    pub fn select(
        &self,
        filter: &Filter,
        found: Found,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Selection> {
        filter.check()?;
        let choice = Choice::new(filter, self.trace.processes(), self.trace.threads())?;
        let has_required = self.has_required(filter);
        // A table tells sizes, not what a sample stands for, and a summary not how uncertain that
        // is.
        let is_estimate = self.trace.is_sampled() && !self.is_without_events();
        if !is_estimate && is_plain(filter) && found == Found::default() && self.summary_has_frees(filter)? {
            return self.select_summary(has_required.as_deref().map(Vec::as_slice));
        }
        // What a snapshot holds stands in the file on its own.
        let is_of_snapshot = matches!(filter.at, Some(Moment::Snapshot { .. }));
        if !is_of_snapshot && self.is_without_events() {
            return Err(Error::NoEvents);
        }
        if let Some(table) = self.table().filter(|_| !is_of_snapshot && !is_estimate) {
            let passing = match AllocationSet::is_worth(filter) {
                true => Some(self.passing(table, filter, &choice, is_cancelled)?),
                false => None,
            };
            let file_peak = self.summary.get_or_init(|| self.stored()).as_ref();
            let kept = self.kept(table, is_cancelled);
            let scan = Scan {
                kept,
                table,
                filter,
                choice: &choice,
                has_required: has_required.as_deref().map(Vec::as_slice),
                duration_ns: self.trace.duration_ns(),
                file_peak: file_peak.map(|summary| (summary.totals.peak_bytes, summary.totals.peak_time_ns)),
                wants_histograms: found.histograms,
                lifetimes: kept.lifetimes_for(filter, found.histograms)?,
                passing: passing.as_deref(),
            };
            return Ok(Selection::of_scan(table, &self.plans(table)[0], scan.run()?));
        }
        let by = if found.threads { GroupBy::Threads } else { GroupBy::Stacks };
        let query = Query {
            filter: filter.clone(),
            actions: vec![Action::Ranking { by, sort: Metric::default() }],
            histograms: if found.histograms {
                vec![HistogramOf::Size, HistogramOf::Lifetime]
            } else {
                Vec::new()
            },
            ..Query::default()
        };
        let progress: &mut Progress<'_> = &mut |_, _| {};
        let mut replay = Replay::new(&self.trace, progress);
        let collected = replay.collect(&query, &choice, has_required.as_deref().map(Vec::as_slice))?;
        Ok(Selection::of_replay(collected, replay.damage))
    }

    /// Groups of stacks by the names that are known: see [`heapr_query::StackGroups`].
    pub fn stack_groups(
        &self,
        stacks: impl IntoIterator<Item = StackIndex>,
        by: GroupBy,
        cull: &CullList,
        filter: &Filter,
    ) -> StackGroups<'_> {
        StackGroups::with_names(&self.trace, self.tree(), stacks, by, cull, filter)
    }

    /// What was allocated before a filter's range and is alive at its start: what of it is freed in
    /// the range, and what is not (number, bytes); nothing if there is no table. The rest of
    /// the filter chooses.
    ///
    /// # Errors
    /// As [`Explorer::select`].
    pub fn older(
        &self,
        filter: &Filter,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<[(u64, u64); 2]>> {
        filter.check()?;
        let Some(table) = self.table() else { return Ok(None) };
        let choice = Choice::new(filter, self.trace.processes(), self.trace.threads())?;
        let has_required = self.has_required(filter);
        let has_required = has_required.as_deref().map(Vec::as_slice);
        self.timeless_scan(table, filter, &choice, has_required, is_cancelled)?.older().map(Some)
    }

    /// As in [`heapr_query::run`]: of some stacks a summary does not tell how many ends were no
    /// frees.
    fn summary_has_frees(&self, filter: &Filter) -> Result<bool> {
        Ok(filter.takes_all_stacks() || self.summary(&mut Vec::new())?.totals.implied_frees == 0)
    }

    fn select_summary(&self, has_required: Option<&[bool]>) -> Result<Selection> {
        let mut damage = Vec::new();
        let summary = self.summary(&mut damage)?;
        let mut rows = summary.by_stack.clone();
        let (mut totals, mut by_heap) = (summary.totals, summary.by_heap.clone());
        if let Some(has_required) = has_required {
            rows.retain(|row| has_required.get(row.stack.0 as usize).copied().unwrap_or(false));
            let mut sums = RowSums::default();
            rows.iter().for_each(|row| sums.add(row));
            sums.set_peak_time(totals.peak_time_ns);
            (totals, by_heap) = (sums.totals, sums.by_heap);
        }
        let mut by_heap: Vec<HeapRow> =
            by_heap.into_iter().map(|(process, heap, totals)| HeapRow { process, heap, totals }).collect();
        by_heap.sort_by_key(|row| (row.process, row.heap));
        Ok(Selection {
            totals,
            by_heap,
            histograms: Vec::new(),
            damage,
            rows: RowSource::Memory(Rows { totals: rows, threads: Vec::new() }),
            thread_rows: OnceLock::new(),
            sums: FoundSums::default(),
        })
    }

    /// By stack what culling leaves of it.
    pub(crate) fn left(&self, cull: &CullList) -> Arc<Vec<Node>> {
        self.left.get(cull, || Culling::new(self.tree(), cull).all())
    }

    pub(crate) fn culled<'a>(
        &'a self,
        selection: &'a Selection,
        cull: &CullList,
        by: GroupBy,
    ) -> Result<Culled<'a, 'static>> {
        let rows = match (by, self.table()) {
            (GroupBy::Threads, Some(table)) if !selection.sums.is_empty() => {
                let make = || RowSource::Memory(self.plans(table)[1].rows(table, &selection.sums));
                selection.thread_rows.get_or_init(make)
            }
            (GroupBy::Threads, _) => selection.thread_rows.get().unwrap_or(&selection.rows),
            _ => &selection.rows,
        };
        Culled::with_left(rows, self.tree(), &self.left(cull))
    }

    /// Ranks all groups.
    ///
    /// # Errors
    /// Never for what [`Explorer::select`] made.
    pub fn rank(&self, selection: &Selection, cull: &CullList, by: GroupBy, sort: Metric) -> Result<Ranking> {
        self.culled(selection, cull, by)?.ranking(by, sort, usize::MAX)
    }

    /// All functions of a selection, each with all that it calls; of an explorer that tells lines
    /// apart each line.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn functions(&self, selection: &Selection, cull: &CullList, sort: Metric) -> Result<Functions> {
        self.culled(selection, cull, GroupBy::Stacks)?.functions(self.tells_lines, sort, usize::MAX)
    }

    /// The frames of a group, as [`heapr_query::Report::frames`].
    #[must_use]
    pub fn frames(&self, group: &Group) -> Vec<FrameView<'_>> {
        frames_of_group(self.tree(), &*self.trace, group)
    }

    /// What names a group's stack: for [`Explorer::stack_frames`].
    #[must_use]
    pub fn stack_key(&self, group: &Group) -> Option<(u32, u32)> {
        match group.key {
            GroupKey::Stack(stack) => Some((group.representative.0, stack)),
            GroupKey::Frame(Some((stack, _))) => Some((group.representative.0, stack)),
            _ => None,
        }
    }

    /// The frame of a group in a ranking of frames.
    #[must_use]
    pub fn frame_of(&self, group: &Group) -> Option<FrameNumber> {
        match group.key {
            GroupKey::Frame(Some((_, frame))) => Some(FrameNumber(frame.0)),
            _ => None,
        }
    }

    /// All frames of a stack, innermost first, with their numbers, and how many of them culling has
    /// removed; nothing if the key is not one that [`Explorer::stack_key`] gave.
    #[must_use]
    pub fn stack_frames(&self, key: (u32, u32)) -> Option<(Vec<(FrameNumber, FrameView<'_>)>, usize)> {
        let tree = self.tree();
        let stack = StackIndex(key.0);
        if key.0 as usize >= self.trace.stacks().len() {
            return None;
        }
        let whole = tree.named(stack);
        let mut removed = 0;
        let mut at = whole;
        while at != key.1 {
            if at == 0 {
                return None;
            }
            at = tree.parent(at);
            removed += 1;
        }
        let numbers: Vec<FrameNumber> = tree.frames_of(whole).map(|frame| FrameNumber(frame.0)).collect();
        let views = tree.views(&*self.trace, stack, whole);
        Some((numbers.into_iter().zip(views).collect(), removed))
    }

    /// The innermost frame of a stack after culling (the second number of [`Explorer::stack_key`]).
    #[must_use]
    pub fn innermost_frame(&self, key: (u32, u32)) -> Option<FrameNumber> {
        let tree = self.tree();
        ((key.1 as usize) < tree.count())
            .then(|| tree.frame(key.1))
            .flatten()
            .map(|frame| FrameNumber(frame.0))
    }

    /// A frame by its number, without a place in the source.
    #[must_use]
    pub fn frame(&self, frame: FrameNumber) -> Option<FrameView<'_>> {
        let frames = &self.tree().frames;
        ((frame.0 as usize) < frames.count()).then(|| frames.view(FrameId(frame.0)))
    }

    /// The frames whose module or symbol holds `text`, whatever the case, by number.
    #[must_use]
    pub fn frames_with_text(&self, text: &str) -> Vec<bool> {
        let text = text.to_lowercase();
        let frames = &self.tree().frames;
        let has = |name: Option<&str>| name.is_some_and(|name| name.to_lowercase().contains(&text));
        (0..frames.count() as u32)
            .map(|frame| has(frames.symbol(FrameId(frame))) || has(frames.module(FrameId(frame))))
            .collect()
    }

    /// The first frame that a pattern matches.
    #[must_use]
    pub fn frame_matching(&self, pattern: &FramePattern) -> Option<FrameNumber> {
        let frames = &self.tree().frames;
        let matches =
            |&frame: &u32| pattern.matches(frames.module(FrameId(frame)), frames.symbol(FrameId(frame)));
        (0..frames.count() as u32).find(matches).map(FrameNumber)
    }

    /// Keeps the groups of a ranking of stacks, frames or images one of whose frames is set (by
    /// frame number).
    pub fn retain_with_frames(&self, groups: &mut Vec<Group>, is_set: &[bool]) {
        let tree = self.tree();
        let has: Vec<bool> = tree.stacks_with(is_set);
        groups.retain(|group| match group.key {
            GroupKey::Stack(stack) => has.get(stack as usize).copied().unwrap_or(false),
            GroupKey::Frame(Some((_, frame))) => is_set.get(frame.0 as usize).copied().unwrap_or(false),
            _ => false,
        });
    }
}

/// Number of a stack by names.
pub(crate) type Node = NamedStack;
