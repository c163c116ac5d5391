//! From a query to its report: the summary where it suffices, else a replay of what the query needs.

use heapr_ledger::{Cause, Ledger, Observer};
use heapr_trace::{Block, Event, ProcessIndex, StackIndex, StackTotals, Summary, Trace};

use crate::aggregate;
use crate::answer::Culled;
use crate::choice::Choice;
use crate::code_table::CodeTable;
use crate::collector::{Collected, Collector, Counted, Death, sum_of, sums_by_heap};
use crate::error::Result;
use crate::filter::{Filter, Moment, Span};
use crate::query::Query;
use crate::report::{HeapRow, Report, Section};
use crate::row_table::Rows;
use crate::stack_source::StackSource;
use crate::symbol_source::{NoSymbols, SymbolSource};
use crate::symbol_tree::SymbolTree;

/// All times.
const ALWAYS: Span = Span { from: 0, to: u64::MAX };

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
}

/// Answers a query.
///
/// # Errors
/// The query can't be meant, names what the trace does not have, or the trace cannot be read.
pub fn run<'t>(trace: &'t Trace, query: &Query, symbols: &mut dyn SymbolSource) -> Result<Report<'t>> {
    query.check()?;
    let choice = Choice::new(&query.filter, trace.processes(), trace.threads())?;
    let mut no_symbols = NoSymbols;
    let symbols: &mut dyn SymbolSource = if query.needs_symbols() { symbols } else { &mut no_symbols };
    let required = &query.filter.required_frames;
    if let Some(summary) = usable_summary(trace, query, &choice)? {
        let mut collected = from_summary(summary, query.filter.at);
        let tree = name(trace, &collected.rows, symbols);
        if !required.is_empty() {
            let has = has_required(trace, &tree, query);
            aggregate::retain(&mut collected.rows, |row| {
                has.get(row.stack.0 as usize).copied().unwrap_or(false)
            });
            let peak_time_ns = collected.totals.peak_time_ns;
            collected.totals = sum_of(&collected.rows, peak_time_ns);
            collected.by_heap = sums_by_heap(&collected.rows, peak_time_ns);
        }
        return answer(trace, query, collected, tree);
    }
    if required.is_empty() {
        let collected = replay(trace, query, &choice, None)?;
        let tree = name(trace, &collected.rows, symbols);
        return answer(trace, query, collected, tree);
    }
    // Which stacks count must be known before the replay.
    let wanted = vec![true; trace.stacks().len()];
    let tree = SymbolTree::build(trace, CodeTable::new(trace.mappings()), symbols, &wanted);
    let has = has_required(trace, &tree, query);
    let collected = replay(trace, query, &choice, Some(&has))?;
    answer(trace, query, collected, tree)
}

/// The summary, if nothing is asked that it does not hold.
fn usable_summary(trace: &Trace, query: &Query, choice: &Choice) -> Result<Option<Summary>> {
    let Filter { range, lifetime, size, at, is_temporary_only, allocation_type, .. } = &query.filter;
    let suffices = choice.is_everything()
        && range.is_none()
        && lifetime.is_none()
        && size.is_none()
        && !is_temporary_only
        && allocation_type.is_none()
        && matches!(at, None | Some(Moment::Peak))
        && query.histograms.is_empty()
        && !query.is_by_thread();
    if !suffices {
        return Ok(None);
    }
    // A damaged summary is no loss: the events tell the same.
    Ok(trace.summary().unwrap_or(None))
}

fn from_summary(summary: Summary, at: Option<Moment>) -> Collected {
    let Summary { mut totals, mut by_heap, mut by_stack, .. } = summary;
    if at == Some(Moment::Peak) {
        by_stack.retain(|row| row.peak_count > 0);
        for row in &mut by_stack {
            *row = StackTotals {
                total_count: row.peak_count,
                total_bytes: row.peak_bytes,
                outstanding_count: row.peak_count,
                outstanding_bytes: row.peak_bytes,
                realloc_count: 0,
                temporary_count: 0,
                ..*row
            };
        }
        let rows = Rows { totals: by_stack, threads: Vec::new() };
        let peak_time_ns = totals.peak_time_ns;
        totals = sum_of(&rows, peak_time_ns);
        by_heap = sums_by_heap(&rows, peak_time_ns);
        return Collected { rows, totals, by_heap, histograms: Vec::new() };
    }
    Collected {
        rows: Rows { totals: by_stack, threads: Vec::new() },
        totals,
        by_heap,
        histograms: Vec::new(),
    }
}

/// Names the stacks of some rows.
fn name(trace: &Trace, rows: &Rows, symbols: &mut dyn SymbolSource) -> SymbolTree {
    let mut wanted = vec![false; trace.stacks().len()];
    for row in &rows.totals {
        let mut stack = row.stack;
        while let Some(place) = wanted.get_mut(stack.0 as usize) {
            if *place || stack == StackIndex::EMPTY {
                break;
            }
            *place = true;
            stack = trace.stacks().parent(stack);
        }
    }
    SymbolTree::build(trace, CodeTable::new(trace.mappings()), symbols, &wanted)
}

/// By stack of the file: whether one of its frames is required.
fn has_required(trace: &Trace, tree: &SymbolTree, query: &Query) -> Vec<bool> {
    let with = tree.stacks_with(&tree.matching_frames(&query.filter.required_frames));
    (0..trace.stacks().len() as u32)
        .map(|stack| with.get(tree.named(StackIndex(stack)) as usize).copied().unwrap_or(false))
        .collect()
}

fn answer<'t>(trace: &'t Trace, query: &Query, collected: Collected, tree: SymbolTree) -> Result<Report<'t>> {
    let Collected { rows, totals, by_heap, histograms } = collected;
    let culled = Culled::new(&rows, &tree, &query.cull);
    let sections = query
        .actions
        .iter()
        .map(|action| Ok(Section { action: action.clone(), answer: culled.answer(action, query.top)? }))
        .collect::<Result<Vec<_>>>()?;
    let by_heap = by_heap.into_iter().map(|(process, heap, totals)| HeapRow { process, heap, totals });
    Ok(Report {
        totals,
        by_heap: by_heap.collect(),
        sections,
        histograms: histograms.into_iter().map(crate::histogram::HistogramCounter::finish).collect(),
        stacks: trace,
        tree,
    })
}

/// Adds up the events that a query needs.
fn replay(trace: &Trace, query: &Query, choice: &Choice, has: Option<&[bool]>) -> Result<Collected> {
    let filter = &query.filter;
    let range = filter.range.unwrap_or(ALWAYS);
    match filter.at {
        Some(Moment::At { time_ns }) => replay_to(trace, query, choice, has, time_ns),
        Some(Moment::Peak) => {
            let mut whole = query.clone();
            whole.filter.at = None;
            let (_, time_ns) = peak_of(trace, &whole, choice, range)?;
            replay_to(trace, query, choice, has, time_ns)
        }
        None => {
            let counted = filter.allocation_type.map_or(Counted::Born, Counted::Type);
            let mut collector =
                Collector::new(choice, filter, counted, range, has, query.is_by_thread(), &query.histograms);
            let mut ledger = new_ledger(trace);
            let needs_before = filter.allocation_type.is_some_and(|kind| !kind.is_allocated_inside());
            if needs_before {
                load_until(trace, &mut ledger, range.from)?;
                ledger.live_blocks().for_each(|block| collector.was_live(&block));
            }
            feed(trace, &mut ledger, &mut collector, range.from, range.to)?;
            if filter.range.is_some() {
                // What is freed in a range but was allocated before it is no oddity.
                collector.unmatched_frees = 0;
                collector.inherited_frees = 0;
            }
            let end_ns = range.to.min(trace.duration_ns());
            ledger.live_blocks().for_each(|block| collector.is_live_at_end(&block, end_ns));
            Ok(collector.finish())
        }
    }
}

/// What is live after the events at a time; with a range, of what was allocated in it.
fn replay_to(
    trace: &Trace,
    query: &Query,
    choice: &Choice,
    has: Option<&[bool]>,
    time_ns: u64,
) -> Result<Collected> {
    let filter = &query.filter;
    let end = time_ns.saturating_add(1);
    let range = filter.range.unwrap_or(ALWAYS);
    let mut collector =
        Collector::new(choice, filter, Counted::Live, range, has, query.is_by_thread(), &query.histograms);
    let mut ledger = new_ledger(trace);
    match filter.range {
        None => load_until(trace, &mut ledger, end)?,
        Some(range) => feed(trace, &mut ledger, &mut (), range.from, end.min(range.to))?,
    }
    ledger.live_blocks().for_each(|block| collector.was_live(&block));
    ledger.live_blocks().for_each(|block| collector.is_live_at_end(&block, time_ns));
    Ok(collector.finish())
}

/// Bytes and time of the peak of the chosen blocks.
fn peak_of(trace: &Trace, query: &Query, choice: &Choice, range: Span) -> Result<(u64, u64)> {
    let filter = Filter { required_frames: Vec::new(), ..query.filter.clone() };
    let mut collector = Collector::new(choice, &filter, Counted::Born, range, None, false, &[]);
    let mut ledger = new_ledger(trace);
    feed(trace, &mut ledger, &mut collector, range.from, range.to)?;
    Ok(collector.peak())
}

fn new_ledger(trace: &Trace) -> Ledger {
    let mut ledger = Ledger::new();
    for (index, process) in trace.processes().iter().enumerate() {
        ledger.add_process(ProcessIndex(index as u32), process.origin);
    }
    ledger
}

/// Brings an empty ledger to the state before `time_ns`: from the last checkpoint, so that what lies long before is not
/// read.
fn load_until(trace: &Trace, ledger: &mut Ledger, time_ns: u64) -> Result<()> {
    let mut from = 0;
    if let Some(before) = time_ns.checked_sub(1)
        && let Ok(Some(checkpoint)) = trace.checkpoint_before(before)
    {
        from = checkpoint.time_ns;
        ledger.load(checkpoint.blocks);
    }
    // Events at the checkpoint's own time have happened in part: those before it in the file are in its blocks. Times
    // are distinct but for ties within a nanosecond, and a tie replayed twice frees what is gone or makes what is there.
    feed(trace, ledger, &mut (), from.saturating_add(u64::from(from != 0)), time_ns)
}

/// Replays the events of `from..to`.
fn feed(trace: &Trace, ledger: &mut Ledger, observer: &mut impl Observer, from: u64, to: u64) -> Result<()> {
    let mut events = trace.events(from, to);
    while let Some(batch) = events.next_batch()? {
        for event in batch {
            ledger.apply(event, trace.process_of(event.thread), observer);
        }
    }
    Ok(())
}

impl Observer for Collector<'_> {
    #[inline]
    fn born(&mut self, block: &Block) {
        Collector::born(self, block);
    }

    #[inline]
    fn died(&mut self, block: &Block, death: &heapr_ledger::Death) {
        if death.cause == Cause::Implied {
            self.implied_frees += 1;
        }
        Collector::died(self, block, Death { free_ns: death.time_ns, is_temporary: death.is_temporary });
    }

    fn failed(&mut self, _event: &Event, _process: ProcessIndex, _size_bytes: u64, _stack: StackIndex) {
        self.failed_count += 1;
    }

    fn unmatched_free(&mut self, _event: &Event, _process: ProcessIndex, is_inherited: bool) {
        if is_inherited {
            self.inherited_frees += 1;
        } else {
            self.unmatched_frees += 1;
        }
    }
}
