//! Explorer: answers many queries on one trace.

use std::sync::{Arc, OnceLock};

use heapr_query::engine::{
    Choice, CodeTable, Culled, Culling, NamedStack, Replay, RowSource, RowSums, Rows, SymbolTree,
    is_without_events,
};
use heapr_query::{
    Action, CullList, Error, Filter, Functions, GroupBy, HeapRow, HistogramOf, Metric, Moment, Progress,
    Query, Ranking, Result, StackGroups, SymbolSource,
};
use heapr_trace::{Damage, LanguageFrames, StackIndex, Summary, Trace};

use crate::allocation_set::AllocationSet;
use crate::cached_sums::CachedSums;
use crate::event_table::{EventTable, TableLimit};
use crate::frame_tree::FrameTree;
use crate::parallelism::Parallelism;
use crate::recent_results::RecentResults;
use crate::row_plan::RowPlan;
use crate::scan::Scan;
use crate::selection::Selection;
use crate::site_sums::FoundSums;
use crate::table_builder::GrowingTable;
use crate::timeline::{SiteGroups, TimelineBy};

/// Additional results that a selection must support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Found {
    /// Rankings of threads.
    pub threads: bool,
    /// Histograms.
    pub histograms: bool,
}

/// Answers queries on one trace. All methods may be called by several threads at once.
#[derive(Debug)]
pub struct Explorer {
    trace: Arc<Trace>,
    /// Whether a function has one frame per source line.
    tells_lines: bool,
    /// Choice of the frames to show in stacks with frames of a language; `None`: the trace's
    /// choice.
    shown: Option<LanguageFrames>,
    /// Symbol tree; shared by explorers of the same stacks.
    tree: OnceLock<Arc<SymbolTree>>,
    /// Table of events, shared by explorers of the same events like the sums computed from it.
    /// `None` inside if there are too many events.
    table: Arc<OnceLock<Option<EventTable>>>,
    /// Summary of the file.
    summary: OnceLock<Option<Summary>>,
    /// Summary from a replay if the file lacks one, and the damage of the events.
    replayed_summary: OnceLock<(Summary, Vec<Damage>)>,
    pub(crate) parallelism: Parallelism,
    /// Culled stack of each stack, by cull list.
    left: RecentResults<CullList, Vec<Node>>,
    /// Groups of the table's sites, by cull list and kind of series.
    pub(crate) site_groups: RecentResults<(CullList, TimelineBy), SiteGroups>,
    pub(crate) plans: Arc<OnceLock<[RowPlan; 2]>>,
    /// Sums of the table.
    pub(crate) sums: Arc<CachedSums>,
    /// Allocations that pass a filter, by filter without range, moment and type.
    pub(crate) passing: RecentResults<Filter, AllocationSet>,
    /// The tree of frames as it is, and with recursion collapsed: nearly all flame graphs need one.
    pub(crate) frame_trees: [OnceLock<FrameTree>; 2],
    /// Whether each stack of the file passes, by filter with only conditions on frames.
    pub(crate) required: RecentResults<Filter, Vec<bool>>,
    /// Passes of each stack, by a filter that has only rules of what is left out.
    pub(crate) left_out: RecentResults<Filter, Vec<bool>>,
}

/// Whether a summary has all that a filter needs.
fn is_plain(filter: &Filter) -> bool {
    *filter == filter.of_frames()
}

impl Explorer {
    /// An explorer that has not yet read names and events.
    #[must_use]
    pub fn new(trace: Arc<Trace>) -> Self {
        Self::with_parallelism(trace, Parallelism::default())
    }

    /// Variant of [`Explorer::new`] that spreads scans over threads.
    #[must_use]
    pub fn with_parallelism(trace: Arc<Trace>, parallelism: Parallelism) -> Self {
        Self {
            parallelism,
            left: RecentResults::default(),
            site_groups: RecentResults::default(),
            plans: Arc::default(),
            sums: Arc::default(),
            passing: RecentResults::default(),
            frame_trees: Default::default(),
            required: RecentResults::default(),
            left_out: RecentResults::default(),
            trace,
            tells_lines: false,
            shown: None,
            tree: OnceLock::new(),
            table: Arc::default(),
            summary: OnceLock::new(),
            replayed_summary: OnceLock::new(),
        }
    }

    /// An explorer of the same trace that distinguishes the lines of a function, with names. It has
    /// no events, and is used with this one's selections.
    #[must_use]
    pub fn telling_lines(&self, symbols: &mut dyn SymbolSource) -> Self {
        let trace = Arc::clone(&self.trace);
        let explorer =
            Self { tells_lines: true, shown: self.shown, ..Self::with_parallelism(trace, self.parallelism) };
        explorer.name(symbols);
        explorer
    }

    /// An explorer of the same events with another choice of frames. It has no names yet.
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

    /// Choice of the frames to show in stacks with frames of a language.
    #[must_use]
    pub fn language_frames(&self) -> LanguageFrames {
        self.shown.unwrap_or_else(|| self.trace.language_frames())
    }

    /// Returns the trace.
    #[must_use]
    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// Names all stacks. Earlier queries on stacks have no names.
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

    /// Takes over the names of an earlier state of the same file, and names the stacks added since.
    /// Returns `false` if there are no names, or if mappings were added, which may change the names
    /// of addresses.
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

    /// Variant of [`Explorer::read_events`] for a growing file: reads only the added events.
    ///
    /// # Errors
    /// The trace cannot be read, or the call was cancelled.
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

    /// Reads all events into a table, if the limit allows; otherwise queries replay them.
    ///
    /// # Errors
    /// The trace cannot be read, or the call was cancelled.
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

    /// The table of events, if it was made; `None` for a trace recorded without events.
    #[must_use]
    pub fn table(&self) -> Option<&EventTable> {
        self.table.get()?.as_ref().filter(|_| !self.is_without_events())
    }

    /// Whether the trace was recorded without events: it has only totals and snapshots.
    #[must_use]
    pub fn is_without_events(&self) -> bool {
        is_without_events(&self.trace)
    }

    /// Chunks of events that could not be used, as far as known.
    #[must_use]
    pub fn event_damage(&self) -> &[Damage] {
        self.table().map_or(&[], |table| &table.damage)
    }

    /// Whether the file's summary answers a filter, without events.
    #[must_use]
    pub fn needs_no_events(&self, filter: &Filter, found: Found) -> bool {
        is_plain(filter) && found == Found::default() && self.summary.get_or_init(|| self.stored()).is_some()
    }

    /// The file's summary, if it is complete.
    fn stored(&self) -> Option<Summary> {
        heapr_query::written_summary(&self.trace).ok().flatten()?;
        self.trace.summary().ok().flatten()
    }

    /// The file's summary, or that of a replay.
    fn summary(&self, damage: &mut Vec<Damage>) -> Result<&Summary> {
        if let Some(summary) = self.summary.get_or_init(|| self.stored()) {
            return Ok(summary);
        }
        // A replay would answer with zeros.
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

    /// All stacks by names; without names if [`Explorer::name`] was not called.
    pub fn tree(&self) -> &SymbolTree {
        self.tree.get_or_init(|| {
            let wanted = vec![true; self.trace.stacks().len()];
            let codes = self.codes();
            let no_symbols = &mut heapr_query::NoSymbols;
            Arc::new(SymbolTree::build(&*self.trace, codes, no_symbols, wanted))
        })
    }

    /// Sums the allocations that a filter selects.
    ///
    /// # Errors
    /// The filter makes no sense, names what the trace does not have, the trace cannot be read, or
    /// the call was cancelled.
    pub fn select(
        &self,
        filter: &Filter,
        found: Found,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Selection> {
        filter.check()?;
        let choice = Choice::new(filter, self.trace.processes(), self.trace.threads())?;
        let has_required = self.has_required(filter);
        // A table holds sizes without the weights of samples, and a summary has no variances.
        let is_estimate = self.trace.is_sampled() && !self.is_without_events();
        if !is_estimate && is_plain(filter) && found == Found::default() && self.summary_has_frees(filter)? {
            return self.select_summary(has_required.as_deref().map(Vec::as_slice));
        }
        // A snapshot's blocks are stored separately in the file.
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

    /// Groups of stacks by their names: see [`heapr_query::StackGroups`].
    pub fn stack_groups(
        &self,
        stacks: impl IntoIterator<Item = StackIndex>,
        by: GroupBy,
        cull: &CullList,
        filter: &Filter,
    ) -> StackGroups<'_> {
        StackGroups::with_names(&self.trace, self.tree(), stacks, by, cull, filter)
    }

    /// Allocations from before a filter's range that are live at its start. Returns (number, bytes)
    /// of those that are freed in the range, and of the others; `None` without a table. The rest of
    /// the filter applies.
    ///
    /// # Errors
    /// The errors of [`Explorer::select`].
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

    /// Whether the summary suffices. As in [`heapr_query::run`], it lacks the number of implied
    /// ends for a part of the stacks.
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

    /// The culled stack of each stack.
    pub(crate) fn left(&self, cull: &CullList) -> Arc<Vec<Node>> {
        self.left.get(cull, || Culling::new(self.tree(), cull).all())
    }

    /// The culled stack of a stack, for [`SymbolTree::views`].
    #[must_use]
    pub fn culled_stack(&self, stack: StackIndex, cull: &CullList) -> NamedStack {
        self.left(cull).get(self.tree().named(stack) as usize).copied().unwrap_or(0)
    }

    /// Culled stacks of many stacks: lists are compared only once.
    pub fn culled_stacks(&self, cull: &CullList) -> impl Fn(StackIndex) -> NamedStack + use<'_> {
        let left = self.left(cull);
        move |stack| left.get(self.tree().named(stack) as usize).copied().unwrap_or(0)
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
    /// Never fails for results of [`Explorer::select`].
    pub fn rank(&self, selection: &Selection, cull: &CullList, by: GroupBy, sort: Metric) -> Result<Ranking> {
        self.culled(selection, cull, by)?.ranking(by, sort, usize::MAX)
    }

    /// All functions of a selection, each with all that it calls; each line by itself if the
    /// explorer distinguishes lines.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn functions(&self, selection: &Selection, cull: &CullList, sort: Metric) -> Result<Functions> {
        self.culled(selection, cull, GroupBy::Stacks)?.functions(self.tells_lines, sort, usize::MAX)
    }
}

/// Number of a stack by names.
pub(crate) type Node = NamedStack;
