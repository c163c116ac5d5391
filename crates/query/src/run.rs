//! Answers a query with a report: from the summary where it suffices, else by a replay.

use heapr_trace::{Damage, HeapId, ProcessIndex, StackIndex, Summary, Totals, Trace};

use crate::choice::Choice;
use crate::chosen_stacks::chosen_stacks;
use crate::code_table::CodeTable;
use crate::collector::{Collected, RowSums};
use crate::culled_rows::Culled;
use crate::ended_processes::written_summary;
use crate::error::{Error, Result};
use crate::filter::{Filter, Moment};
use crate::histogram::HistogramCounter;
use crate::query::Query;
use crate::replay::{Progress, Replay};
use crate::report::{HeapRow, Report, Section};
use crate::row_table::{RowSource, Rows};
use crate::stack_source::StackSource;
use crate::symbol_source::{NoSymbols, SymbolSource};
use crate::symbol_tree::SymbolTree;

impl StackSource for Trace {
    fn node_count(&self) -> u32 {
        u32::try_from(self.stacks().len()).unwrap_or(u32::MAX)
    }

    fn node(&self, stack: StackIndex) -> heapr_trace::StackNode {
        self.stacks().node(stack).unwrap_or(heapr_trace::StackNode {
            parent: StackIndex::EMPTY,
            process: ProcessIndex(0),
            return_address_avma: 0,
            first_seen_ns: 0,
        })
    }

    fn parent(&self, stack: StackIndex) -> StackIndex {
        self.stacks().parent(stack)
    }

    fn locate(
        &self,
        process: ProcessIndex,
        avma: u64,
        time_ns: u64,
    ) -> Option<(heapr_trace::ModuleIndex, u64)> {
        Trace::locate(self, process, avma, time_ns)
    }

    fn module_path(&self, module: heapr_trace::ModuleIndex) -> &str {
        self.modules().get(module.0 as usize).map_or("", |module| &module.path)
    }

    fn language_frames(&self) -> heapr_trace::LanguageFrames {
        Trace::language_frames(self)
    }

    fn function(
        &self,
        process: ProcessIndex,
        place: heapr_trace::LanguagePlace,
    ) -> Option<&heapr_trace::LanguageFunction> {
        Trace::function(self, process, place)
    }
}

/// Answers a query.
///
/// # Errors
/// The query makes no sense, names what the trace does not have, or the trace cannot be read.
pub fn run<'t>(trace: &'t Trace, query: &Query, symbols: &mut dyn SymbolSource) -> Result<Report<'t>> {
    run_with_progress(trace, query, symbols, &mut |_, _| {})
}

/// Variant of [`run`] with `progress`, which receives the progress of a replay.
///
/// # Errors
/// The errors of [`run`].
pub fn run_with_progress<'t>(
    trace: &'t Trace,
    query: &Query,
    symbols: &mut dyn SymbolSource,
    progress: &mut Progress<'_>,
) -> Result<Report<'t>> {
    query.check()?;
    let choice = Choice::new(&query.filter, trace.processes(), trace.threads())?;
    let mut no_symbols = NoSymbols;
    let symbols: &mut dyn SymbolSource = if query.needs_symbols() { symbols } else { &mut no_symbols };
    let progress: &mut Progress<'_> = &mut |read, all| progress(read, all);
    let mut replay = Replay::new(trace, progress);
    // A summary by an earlier version does not hold the variances of its estimates.
    let is_to_be_replayed = trace.is_sampled() && !is_without_events(trace);
    let of_summary = if summary_suffices(query, &choice) && !is_to_be_replayed {
        let evidence = match Evidence::of_summary(trace) {
            Some(evidence) => evidence,
            None if is_without_events(trace) => return Err(Error::NoEventsNoSummary),
            None => Evidence::of_replayed_summary(&mut replay)?,
        };
        // A summary does not tell, for a part of the stacks, how many blocks ended without a free.
        let tells_frees = query.filter.takes_all_stacks() || evidence.totals.implied_frees == 0;
        tells_frees.then_some(evidence)
    } else {
        None
    };
    if of_summary.is_none()
        && !matches!(query.filter.at, Some(Moment::Snapshot { .. }))
        && is_without_events(trace)
    {
        return Err(Error::NoEvents);
    }
    let codes =
        CodeTable::new(trace.mappings()).telling_lines(query.is_by_line()).showing(query.language_frames);
    let mut evidence = if let Some(evidence) = of_summary {
        evidence
    } else if query.filter.takes_all_stacks() {
        Evidence::of_replay(replay.collect(query, &choice, None)?)
    } else {
        // The stacks that count must be known before the replay.
        let wanted = vec![true; trace.stacks().len()];
        let tree = SymbolTree::build(trace, codes, symbols, wanted);
        let by_stack = chosen_stacks(trace, &tree, &query.filter);
        let mut evidence = Evidence::of_replay(replay.collect(query, &choice, Some(&by_stack))?);
        evidence.leave_out(query)?;
        return evidence.report(trace, query, tree, |_| true, replay.damage);
    };
    evidence.leave_out(query)?;
    let wanted = wanted_stacks(trace, &evidence.rows)?;
    let tree = SymbolTree::build(trace, codes, symbols, wanted);
    if query.filter.takes_all_stacks() {
        return evidence.report(trace, query, tree, |_| true, replay.damage);
    }
    let chosen = chosen_stacks(trace, &tree, &query.filter);
    let is_counted = |stack: StackIndex| chosen.get(stack.0 as usize).copied().unwrap_or(false);
    let mut sums = RowSums::default();
    evidence.rows.for_each(|row| {
        if is_counted(row.stack) {
            sums.add(row);
        }
    })?;
    sums.set_peak_time(evidence.totals.peak_time_ns);
    evidence.totals = sums.totals;
    evidence.by_heap = sums.by_heap;
    evidence.report(trace, query, tree, is_counted, replay.damage)
}

/// The summary with the totals by stack and the course, as in the file or from a replay. Also
/// returns the damage of the events that the replay met.
///
/// # Errors
/// There are neither events nor totals, or the events cannot be read.
pub fn whole_summary(trace: &Trace) -> Result<(Summary, Vec<Damage>)> {
    let (mut summary, rows, damage) = summary_and_rows(trace)?;
    summary.by_stack = match rows {
        RowSource::Memory(rows) => rows.totals,
        RowSource::Summary(trace) => trace.summary()?.map(|summary| summary.by_stack).unwrap_or_default(),
    };
    Ok((summary, damage))
}

/// Variant of [`whole_summary`] that leaves the totals by stack in the file if possible: in a large
/// recording they are most of the data.
///
/// # Errors
/// The errors of [`whole_summary`].
pub fn summary_and_rows(trace: &Trace) -> Result<(Summary, RowSource<'_>, Vec<Damage>)> {
    // Reads all totals once, so that no later pass fails half-way.
    let can_be_read = |_: &Summary| trace.for_each_stack_totals(|_| {}).is_ok();
    let written = written_summary(trace).ok().flatten().filter(can_be_read);
    let course = trace.course().ok().flatten();
    let known = |summary| Ok((summary, RowSource::Summary(trace), Vec::new()));
    match (written, course) {
        (Some(written), Some(course)) => known(Summary { course, ..written }),
        (Some(written), None) if is_without_events(trace) || written.event_count == 0 => known(written),
        _ if is_without_events(trace) => Err(Error::NoEventsNoSummary),
        _ => {
            let progress: &mut Progress<'_> = &mut |_, _| {};
            let mut replay = Replay::new(trace, progress);
            let mut summary = replay.summary()?;
            let totals = std::mem::take(&mut summary.by_stack);
            Ok((summary, RowSource::Memory(Rows { totals, threads: Vec::new() }), replay.damage))
        }
    }
}

/// Whether a summary can answer the query.
fn summary_suffices(query: &Query, choice: &Choice) -> bool {
    let Filter { range, lifetime, size, at, is_temporary_only, allocation_type, .. } = &query.filter;
    choice.is_everything()
        && range.is_none()
        && lifetime.is_none()
        && size.is_none()
        && at.is_none()
        && !is_temporary_only
        && allocation_type.is_none()
        && query.histograms.is_empty()
        && !query.is_by_thread()
}

/// Whether the trace has amounts, but no events that show them. A replay would answer with zeros.
pub fn is_without_events(trace: &Trace) -> bool {
    let is_counted = || match trace.summary_totals() {
        // (Some tools write no totals.)
        Ok(Some(Summary { totals, .. })) => {
            totals.alloc_count > 0 || totals.outstanding_bytes > 0 || totals.peak_bytes > 0
        }
        Ok(None) => trace.snapshots().iter().any(|snapshot| snapshot.block_count > 0),
        Err(_) => true,
    };
    trace.event_count() == 0 && trace.event_chunks().next().is_none() && is_counted()
}

/// The sums from which the answers are made.
struct Evidence<'t> {
    rows: RowSource<'t>,
    totals: Totals,
    by_heap: Vec<(ProcessIndex, HeapId, Totals)>,
    histograms: Vec<HistogramCounter>,
}

impl<'t> Evidence<'t> {
    /// Takes the sums of the file's summary. `None` if it is missing or damaged, which is no loss:
    /// the events give the same sums.
    fn of_summary(trace: &'t Trace) -> Option<Self> {
        let summary = written_summary(trace).ok().flatten()?;
        // Reads all totals once, so that no later pass fails half-way.
        trace.for_each_stack_totals(|_| {}).ok()?;
        Some(Self {
            rows: RowSource::Summary(trace),
            totals: summary.totals,
            by_heap: summary.by_heap,
            histograms: Vec::new(),
        })
    }

    fn of_replayed_summary(replay: &mut Replay<'_, '_>) -> Result<Self> {
        let summary = replay.summary()?;
        Ok(Self {
            rows: RowSource::Memory(Rows { totals: summary.by_stack, threads: Vec::new() }),
            totals: summary.totals,
            by_heap: summary.by_heap,
            histograms: Vec::new(),
        })
    }

    fn of_replay(collected: Collected) -> Self {
        let Collected { rows, totals, by_heap, histograms } = collected;
        Self { rows: RowSource::Memory(rows), totals, by_heap, histograms }
    }

    /// Leaves out the rows that the query does not need.
    fn leave_out(&mut self, query: &Query) -> Result<()> {
        if query.only_held {
            self.rows = RowSource::Memory(self.rows.held()?);
        }
        Ok(())
    }

    fn report(
        self,
        trace: &'t Trace,
        query: &Query,
        tree: SymbolTree,
        is_counted: impl Fn(StackIndex) -> bool,
        damage: Vec<heapr_trace::Damage>,
    ) -> Result<Report<'t>> {
        let culled = Culled::new(&self.rows, &tree, &query.cull, is_counted)?;
        let sections = query
            .actions
            .iter()
            .map(|action| Ok(Section { action: action.clone(), answer: culled.answer(action, query.top)? }))
            .collect::<Result<Vec<_>>>()?;
        let mut by_heap: Vec<HeapRow> = self
            .by_heap
            .into_iter()
            .map(|(process, heap, totals)| HeapRow { process, heap, totals })
            .collect();
        by_heap.sort_by_key(|row| (row.process, row.heap));
        Ok(Report {
            totals: self.totals,
            by_heap,
            sections,
            histograms: self.histograms.into_iter().map(HistogramCounter::finish).collect(),
            damage,
            is_own_peak: query.filter.is_known_at_birth() || query.filter.at.is_some(),
            stacks: trace,
            tree,
        })
    }
}

/// Whether each stack of the file has a row, or is a caller of a stack with a row.
fn wanted_stacks(trace: &Trace, rows: &RowSource<'_>) -> Result<Vec<bool>> {
    let stacks = trace.stacks();
    let mut wanted = vec![false; stacks.len()];
    rows.for_each(|row| {
        let mut stack = row.stack;
        while let Some(place) = wanted.get_mut(stack.0 as usize) {
            if *place || stack == StackIndex::EMPTY {
                break;
            }
            *place = true;
            stack = stacks.parent(stack);
        }
    })?;
    Ok(wanted)
}
