//! Meaning of queries in slow and obviously right code: a list of all allocations with their times,
//! filtered and summed one by one.

use std::collections::BTreeMap;

use heapr_query::{AllocationType, Filter, GroupBy, Moment, Span, ThreadChoice};
use heapr_trace::{Amounts, HeapId, ProcessIndex};

use crate::made_trace::{Call, FUNCTIONS, MODULES, PIDS, Path, Step, UNKNOWN, inlined_at, process_of};

/// An allocation and its end.
#[derive(Debug, Clone)]
pub(crate) struct Allocation {
    pub(crate) process: ProcessIndex,
    pub(crate) thread: u32,
    pub(crate) heap: HeapId,
    address: u64,
    size_bytes: u64,
    path: Path,
    is_realloc: bool,
    /// Index of the step that allocated the block.
    born: usize,
    /// Index of the step that ended the block.
    died: Option<usize>,
    is_temporary: bool,
}

/// All allocations of the steps.
pub(crate) fn allocations(steps: &[Step]) -> Vec<Allocation> {
    let mut all: Vec<Allocation> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let process = process_of(step.thread);
        let live = |all: &[Allocation], address: u64| {
            all.iter().position(|allocation| {
                allocation.died.is_none()
                    && (allocation.process, allocation.heap, allocation.address)
                        == (process, step.heap, address)
            })
        };
        let (old_address, new) = match &step.call {
            Call::Alloc { address, size_bytes, path } => (None, Some((*address, *size_bytes, path, false))),
            Call::Free { address } => (Some(*address), None),
            Call::Realloc { old_address, address, size_bytes, path } => {
                (Some(*old_address), Some((*address, *size_bytes, path, true)))
            }
            Call::Failed { .. } => (None, None),
        };
        if let Some(place) = old_address.and_then(|address| live(&all, address)) {
            // Temporary: freed by the allocating thread before its next allocation.
            let is_last = |made: &&Allocation| made.thread == step.thread && made.heap == HeapId::MALLOC;
            let last_of_thread = all.iter().rev().find(is_last).map(|made| made.born);
            all[place].is_temporary = new.is_none() && last_of_thread == Some(all[place].born);
            all[place].died = Some(number);
        }
        if let Some((address, size_bytes, path, is_realloc)) = new {
            all.push(Allocation {
                process,
                thread: step.thread,
                heap: step.heap,
                address,
                size_bytes,
                path: path.clone(),
                is_realloc,
                born: number,
                died: None,
                is_temporary: false,
            });
        }
    }
    all
}

/// An allocation as a query counts it.
#[derive(Debug, Clone)]
struct Counted<'a> {
    allocation: &'a Allocation,
    is_outstanding: bool,
    is_temporary: bool,
    is_at_peak: bool,
}

/// A trace as the model represents it.
pub(crate) struct Model<'a> {
    pub(crate) steps: &'a [Step],
    pub(crate) all: Vec<Allocation>,
    pub(crate) end_ns: u64,
}

impl Model<'_> {
    fn chosen(&self, filter: &Filter, allocation: &Allocation) -> bool {
        let is_thread = |choice: &ThreadChoice| match choice {
            ThreadChoice::Tid(tid) => [100, 101, 200][allocation.thread as usize] == *tid,
            ThreadChoice::Name(name) => {
                ["worker-0", "worker-1", "worker-0"][allocation.thread as usize] == name
            }
        };
        (filter.pids.is_empty() || filter.pids.contains(&PIDS[allocation.process.0 as usize]))
            && (filter.heaps.is_empty() || filter.heaps.contains(&allocation.heap))
            && (filter.threads.is_empty() || filter.threads.iter().any(is_thread))
            && filter.size.is_none_or(|span| span.contains(allocation.size_bytes))
    }

    /// Number of the program's frees among the blocks that a filter counts. A free of an address
    /// that was never handed out counts only without conditions on blocks.
    pub(crate) fn free_count(&self, filter: &Filter) -> u64 {
        let of_counted = self.counted(filter).iter().filter(|counted| !counted.is_outstanding).count() as u64;
        let asks_of_blocks = filter.size.is_some()
            || filter.lifetime.is_some()
            || filter.is_temporary_only
            || filter.allocation_type.is_some()
            || filter.at.is_some()
            || !filter.takes_all_stacks();
        let is_unknown = |step: &&Step| {
            let place = Allocation {
                process: process_of(step.thread),
                thread: step.thread,
                heap: step.heap,
                address: 0,
                size_bytes: 0,
                path: Path::new(),
                is_realloc: false,
                born: 0,
                died: None,
                is_temporary: false,
            };
            matches!(step.call, Call::Free { address: UNKNOWN }) && self.chosen(filter, &place)
        };
        let unknown = || match filter.range {
            Some(Span { from: 1.., .. }) => 0,
            Some(Span { to, .. }) => {
                self.steps.iter().filter(|step| step.time_ns < to).filter(is_unknown).count()
            }
            None => self.steps.iter().filter(is_unknown).count(),
        };
        of_counted + if asks_of_blocks { 0 } else { unknown() as u64 }
    }

    fn time(&self, step: usize) -> u64 {
        self.steps[step].time_ns
    }

    /// Live bytes after a step, of these allocations.
    fn live_after(allocations: &[&Allocation], step: usize) -> u64 {
        let is_live = |a: &&&Allocation| a.born <= step && a.died.is_none_or(|died| died > step);
        allocations.iter().filter(is_live).map(|a| a.size_bytes).sum()
    }

    fn counted<'b>(&'b self, filter: &Filter) -> Vec<Counted<'b>> {
        let range = filter.range.unwrap_or(Span { from: 0, to: u64::MAX });
        let is_born_inside = |a: &Allocation| range.contains(self.time(a.born));
        let is_freed_inside = |a: &Allocation| a.died.is_some_and(|died| range.contains(self.time(died)));
        let is_live_at_start = |a: &Allocation| {
            self.time(a.born) < range.from && a.died.is_none_or(|died| self.time(died) >= range.from)
        };
        let chosen: Vec<&Allocation> = self.all.iter().filter(|a| self.chosen(filter, a)).collect();
        let base: Vec<&Allocation> = match filter.allocation_type {
            Some(kind) if !kind.is_allocated_inside() => {
                chosen.into_iter().filter(|a| is_live_at_start(a)).collect()
            }
            _ => chosen.into_iter().filter(|a| is_born_inside(a)).collect(),
        };
        // The first step inside the range after which the most bytes were live. Blocks from before
        // the range only become fewer: all are live at its start.
        let is_from_before = filter.allocation_type.is_some_and(|kind| !kind.is_allocated_inside());
        let steps = (0..self.steps.len()).filter(|&step| range.contains(self.time(step)));
        let most = steps.clone().map(|step| Self::live_after(&base, step)).max().unwrap_or(0);
        let peak_step = steps.clone().find(|&step| most > 0 && Self::live_after(&base, step) == most);
        let is_at_peak = |a: &Allocation| {
            if is_from_before {
                return base.iter().any(|other| other.size_bytes > 0);
            }
            peak_step.is_some_and(|step| a.born <= step && a.died.is_none_or(|died| died > step))
        };
        let (moment, moment_ns) = match filter.at {
            None => (None, 0),
            Some(Moment::At { time_ns }) => {
                (Some((0..self.steps.len()).rev().find(|&step| self.time(step) <= time_ns)), time_ns)
            }
            Some(Moment::Snapshot { .. }) => unreachable!("made traces have no snapshots"),
            Some(Moment::Peak) => (Some(peak_step), peak_step.map_or(0, |step| self.time(step))),
        };
        let mut counted = Vec::new();
        for a in base.iter().copied() {
            let mut is_freed = is_freed_inside(a);
            let mut end_ns = match a.died {
                Some(died) if is_freed => self.time(died),
                _ => range.to.min(self.end_ns),
            };
            if let Some(moment) = moment {
                let is_live =
                    moment.is_some_and(|step| a.born <= step && a.died.is_none_or(|died| died > step));
                if !is_live {
                    continue;
                }
                is_freed = false;
                end_ns = moment_ns;
            }
            let is_type = match filter.allocation_type {
                None => true,
                Some(AllocationType::Aifi | AllocationType::Aofi) => is_freed,
                Some(AllocationType::Aifo | AllocationType::Aofo) => !is_freed,
            };
            let lifetime_ns = end_ns.saturating_sub(self.time(a.born));
            let is_temporary = a.is_temporary && is_freed && is_born_inside(a);
            let passes = is_type
                && filter.lifetime.is_none_or(|span| span.contains(lifetime_ns))
                && (!filter.is_temporary_only || is_temporary)
                && (filter.required_frames.is_empty()
                    || frames(&a.path).iter().any(|&(module, symbol)| {
                        filter
                            .required_frames
                            .iter()
                            .any(|pattern| pattern.matches(Some(module), Some(symbol)))
                    }))
                && filter.innermost.as_ref().is_none_or(|innermost| {
                    let frames = frames(&a.path);
                    let is_culled =
                        |at: usize| innermost.cull.matches(Some(frames[at].0), Some(frames[at].1));
                    let left = (0..frames.len()).find(|&at| at + 1 == frames.len() || !is_culled(at));
                    left.is_some_and(|left| {
                        let (module, symbol) = frames[left];
                        innermost.patterns.iter().any(|pattern| pattern.matches(Some(module), Some(symbol)))
                    })
                });
            if passes {
                let is_at_peak = if moment.is_some() { true } else { is_at_peak(a) };
                counted.push(Counted { allocation: a, is_outstanding: !is_freed, is_temporary, is_at_peak });
            }
        }
        counted
    }

    /// Amounts by group, and of all groups.
    pub(crate) fn groups(
        &self,
        filter: &Filter,
        by: GroupBy,
        is_culled: impl Fn(&str) -> bool,
    ) -> (BTreeMap<Vec<String>, Amounts>, Amounts) {
        let mut groups: BTreeMap<Vec<String>, Amounts> = BTreeMap::new();
        let mut whole = Amounts::default();
        for Counted { allocation, is_outstanding, is_temporary, is_at_peak } in self.counted(filter) {
            let size_bytes = allocation.size_bytes;
            let amounts = Amounts {
                total_count: 1,
                total_bytes: size_bytes,
                realloc_count: u64::from(allocation.is_realloc),
                temporary_count: u64::from(is_temporary),
                outstanding_count: u64::from(is_outstanding),
                outstanding_bytes: if is_outstanding { size_bytes } else { 0 },
                peak_count: u64::from(is_at_peak),
                peak_bytes: if is_at_peak { size_bytes } else { 0 },
                ..Amounts::default()
            };
            let mut stack = frames(&allocation.path);
            while stack.len() > 1 && is_culled(stack[0].1) {
                stack.remove(0);
            }
            let key = match by {
                GroupBy::Stacks => {
                    stack.iter().map(|(module, symbol)| format!("{module}!{symbol}")).collect()
                }
                GroupBy::Frames | GroupBy::Lines => {
                    stack.iter().take(1).map(|(module, symbol)| format!("{module}!{symbol}")).collect()
                }
                GroupBy::Images => stack.iter().take(1).map(|(module, _)| (*module).to_owned()).collect(),
                GroupBy::Threads => vec![format!("thread {}", allocation.thread)],
            };
            *groups.entry(key).or_default() += &amounts;
            whole += &amounts;
        }
        (groups, whole)
    }
}

/// Module and symbol of each frame, innermost first.
fn frames(path: &Path) -> Vec<(&'static str, &'static str)> {
    let named = |function: usize| (MODULES[FUNCTIONS[function].0], FUNCTIONS[function].1);
    let mut frames = Vec::new();
    for &(function, slot) in path.iter().rev() {
        // An inlined frame lies in its caller's module.
        if let Some(inlined) = inlined_at(function, slot) {
            frames.push((MODULES[FUNCTIONS[function].0], FUNCTIONS[inlined].1));
        }
        frames.push(named(function));
    }
    frames
}
