//! A recording as findings look at it: what each function of the program's own held over time.

use std::collections::HashMap;

use heapr_query::engine::{CodeTable, FrameId, NamedStack, SymbolTree};
use heapr_query::{
    CullList, FrameText, NAMED_WITHIN, OwnCode, Owner, Suppressions, SymbolSource, whole_summary,
};
use heapr_trace::{
    Amounts, CourseRow, Damage, HeapId, ProcessIndex, StackIndex, StackTotals, Summary, Trace,
};

use crate::estimated::Estimated;
use crate::judged::Judged;
use crate::site::{Held, Site};
use crate::work_time::WorkTime;

/// Stacks that are named of each order: by what was held at the peak, what is left, what was made.
const NAMED_HELD: usize = 20_000;
const NAMED_MADE: usize = 2_000;
/// Of what is held so much is enough to name.
const NAMED_SHARE: f64 = 0.97;

/// See the module.
pub(crate) struct Recording<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) own: &'a OwnCode,
    pub(crate) summary: Summary,
    /// What of the file is in no number.
    pub(crate) damage: Vec<Damage>,
    pub(crate) tree: Tree<'a>,
    /// Moments of the course.
    pub(crate) times_ns: Vec<u64>,
    /// By moment: blocks made until then, by all: how far the work had come.
    pub(crate) work_done: Vec<u64>,
    pub(crate) sites: Vec<Site>,
    /// By process: all that its sites held by moment, and when it worked.
    pub(crate) processes: Vec<WorkTime>,
    /// The file, as commands name it.
    pub(crate) file: String,
    /// How its amounts are said.
    pub(crate) said: Estimated,
}

pub(crate) enum Tree<'a> {
    Own(Box<SymbolTree>),
    Shared(&'a SymbolTree),
}

impl std::ops::Deref for Tree<'_> {
    type Target = SymbolTree;

    fn deref(&self) -> &SymbolTree {
        match self {
            Self::Own(tree) => tree,
            Self::Shared(tree) => tree,
        }
    }
}

impl<'a> Recording<'a> {
    /// Reads the summary and the course, and names the stacks that matter.
    pub(crate) fn new(
        trace: &'a Trace,
        judged: Judged<'a>,
        symbols: &mut dyn SymbolSource,
    ) -> heapr_query::Result<Self> {
        let (summary, damage) = whole_summary(trace)?;
        let wanted = wanted_stacks(trace, &summary);
        let codes = CodeTable::new(trace.mappings());
        let tree = Tree::Own(Box::new(SymbolTree::build(trace, codes, symbols, wanted)));
        Ok(Self::grouped(trace, judged, (summary, damage), tree))
    }

    /// As [`Recording::new`], with names that are known.
    pub(crate) fn with_names(
        trace: &'a Trace,
        judged: Judged<'a>,
        tree: &'a SymbolTree,
    ) -> heapr_query::Result<Self> {
        Ok(Self::grouped(trace, judged, whole_summary(trace)?, Tree::Shared(tree)))
    }

    fn grouped(
        trace: &'a Trace,
        judged: Judged<'a>,
        (mut summary, mut damage): (Summary, Vec<Damage>),
        tree: Tree<'a>,
    ) -> Self {
        // What the recorder itself has summed up does not miss what of the events is damaged.
        if trace.summary_totals().is_ok_and(|written| written.is_none()) {
            damage.extend_from_slice(trace.damage());
        }
        // (massif tells the stacks of some moments only.)
        summary.course.moments.retain(|moment| moment.live_bytes == 0 || !moment.rows.is_empty());
        let times_ns: Vec<u64> = summary.course.moments.iter().map(|moment| moment.time_ns).collect();
        let work_done = summary.course.moments.iter().map(|moment| moment.total_count).collect();
        let mut recording = Self {
            trace,
            own: judged.own,
            summary,
            damage,
            tree,
            times_ns,
            work_done,
            sites: Vec::new(),
            processes: Vec::new(),
            file: judged.file.to_owned(),
            said: Estimated::of(trace.sampling()),
        };
        recording.add_sites();
        recording.leave_out(judged.left_out);
        recording.processes = (0..trace.processes().len() as u32)
            .map(|process| {
                let moments = (&recording.times_ns[..], &recording.work_done[..]);
                WorkTime::of((trace, moments.0, moments.1, &recording.sites), ProcessIndex(process))
            })
            .collect();
        recording
    }

    fn add_sites(&mut self) {
        let frames = own_frames(&self.tree, self.own);
        let mut numbers: HashMap<(ProcessIndex, Option<FrameId>), usize> = HashMap::new();
        let mut sites: Vec<Site> = Vec::new();
        let moment_count = self.times_ns.len();
        let tree = &self.tree;
        let trace = self.trace;
        let mut site_of = |stack: StackIndex| {
            let named = tree.named(stack);
            if named == 0 {
                return None;
            }
            let (frame, owner) = frames[named as usize];
            let process = trace.stacks().node(stack).map_or(ProcessIndex(0), |node| node.process);
            let number = *numbers.entry((process, frame)).or_insert_with(|| {
                sites.push(Site {
                    process,
                    owner,
                    amounts: Amounts::default(),
                    stack,
                    weight: 0,
                    held: vec![Held::default(); moment_count],
                });
                sites.len() - 1
            });
            Some(number)
        };
        let totals = self.summary.by_stack.iter().filter(|totals| totals.heap != HeapId::MMAP);
        let by_site: Vec<(usize, &StackTotals)> =
            totals.filter_map(|totals| Some((site_of(totals.stack)?, totals))).collect();
        // Stacks of the course alone, too.
        for moment in &self.summary.course.moments {
            moment.rows.iter().for_each(|row| {
                site_of(row.stack);
            });
        }
        for (number, totals) in by_site {
            let site = &mut sites[number];
            site.amounts += &totals.amounts;
            let weight = totals.amounts.peak_bytes.max(totals.amounts.outstanding_bytes);
            if weight > site.weight || site.weight == 0 {
                site.weight = weight.max(1);
                site.stack = totals.stack;
            }
        }
        for place in 0..moment_count {
            for (process, row) in self.rows(place) {
                let named = self.tree.named(row.stack);
                match numbers.get(&(process, frames[named as usize].0)) {
                    Some(&number) if named != 0 => sites[number].held[place].add(row),
                    _ => {}
                }
            }
        }
        self.sites = sites;
    }

    /// What is live in the middle of the time and at the end of a process's work: in the process,
    /// or in all of them where several worked, as the peak is of all.
    pub(crate) fn usual(&self, work: &WorkTime) -> (u64, u64) {
        let worked = self.processes.iter().filter(|work| !work.live_bytes.is_empty()).count();
        let live = |place: usize| {
            let moment = self.summary.course.moments.get(place)?;
            Some(moment.live_bytes).filter(|&bytes| bytes > 0)
        };
        let mut of_all: Vec<u64> = (work.first..work.end).filter_map(live).collect();
        let Some(&last) = of_all.last().filter(|_| worked > 1) else {
            return work.usual_bytes();
        };
        of_all.sort_unstable();
        (of_all[of_all.len() / 2], last)
    }

    /// Bytes of blocks that are told without their number: as large as those at the peak.
    pub(crate) fn bytes(&self, bytes: u64) -> String {
        self.said.bytes(bytes, self.usual_count(bytes))
    }

    /// Half of their interval.
    pub(crate) fn half_of_bytes(&self, bytes: u64) -> u64 {
        self.said.half_of_bytes(bytes, self.usual_count(bytes))
    }

    fn usual_count(&self, bytes: u64) -> u64 {
        let totals = &self.summary.totals;
        bytes / (totals.peak_bytes / totals.peak_count.max(1)).max(1)
    }

    /// What stacks held at a moment, and whose they are.
    pub(crate) fn rows(&self, place: usize) -> impl Iterator<Item = (ProcessIndex, &CourseRow)> {
        let moment = self.summary.course.moments.get(place);
        moment.into_iter().flat_map(|moment| moment.rows.iter().map(|row| (moment.time_ns, row))).filter_map(
            |(time_ns, row)| {
                let process = self.process_of(row.stack);
                let known = self.trace.processes().get(process.0 as usize);
                // What a process has left behind is nobody's any more.
                let has_ended =
                    known.and_then(|process| process.end_ns).is_some_and(|end_ns| end_ns < time_ns);
                (!has_ended).then_some((process, row))
            },
        )
    }

    /// A stack by names; of one that holds too little to be named the nearest caller that is.
    pub(crate) fn near(&self, stack: StackIndex) -> NamedStack {
        let mut next = stack;
        loop {
            let named = self.tree.named(next);
            if named != 0 || next == StackIndex::EMPTY {
                return named;
            }
            next = self.trace.stacks().parent(next);
        }
    }

    /// The process that a stack is of.
    pub(crate) fn process_of(&self, stack: StackIndex) -> ProcessIndex {
        self.trace.stacks().node(stack).map_or(ProcessIndex(0), |node| node.process)
    }

    /// Forgets what is known to be harmless.
    fn leave_out(&mut self, rules: &Suppressions) {
        let (tree, trace) = (&self.tree, self.trace);
        let views = |site: &Site| tree.views(trace, site.stack, tree.named(site.stack));
        self.sites.retain(|site| {
            let texts: Vec<FrameText<'_>> = views(site).iter().map(FrameText::from).collect();
            rules.rule_for(&texts).is_none()
        });
    }

    /// The last moment of work of the process that frees most as it ends, if that is a good part of
    /// all that was ever live.
    pub(crate) fn work_end_ns(&self) -> Option<u64> {
        let freed = |work: &&WorkTime| work.teardown.map_or(0, |(freed, _)| freed);
        let work = self.processes.iter().max_by_key(freed)?;
        let is_large = freed(&work).saturating_mul(4) >= self.summary.totals.peak_bytes.max(1);
        self.times_ns.get(work.end.checked_sub(1)?).copied().filter(|_| is_large)
    }

    /// Whether findings may name a site: the program's and libraries' code, and the runtime's where
    /// the program is an interpreter that tells no functions of what it runs.
    pub(crate) fn is_telling(&self, site: &Site) -> bool {
        let process = self.trace.processes().get(site.process.0 as usize);
        let is_interpreter = || {
            process.is_some_and(|process| {
                self.own.owner(Some(&process.executable), None, None) == Owner::Runtime
            })
        };
        let tells_functions =
            || self.sites.iter().any(|other| other.process == site.process && other.owner == Owner::Program);
        site.owner != Owner::Runtime || is_interpreter() && !tells_functions()
    }

    /// Half of the intervals of a curve's amounts; nothing of what was counted.
    pub(crate) fn halves_of_curve(&self, curve: &[(u64, u64)]) -> Vec<u64> {
        if self.trace.sampling().is_exact() {
            return Vec::new();
        }
        curve.iter().map(|&(_, bytes)| self.half_of_bytes(bytes)).collect()
    }

    /// What a site held over time.
    pub(crate) fn curve(&self, site: &Site) -> Vec<(u64, u64)> {
        self.times_ns.iter().zip(&site.held).map(|(&time_ns, held)| (time_ns, held.bytes)).collect()
    }
}

/// By stack of the tree: the innermost frame of the program's, else of a library's, else of the
/// runtime's; what only allocates for others is none of them.
fn own_frames(tree: &SymbolTree, own: &OwnCode) -> Vec<(Option<FrameId>, Owner)> {
    let allocators = CullList::built_in();
    let owners: Vec<Option<Owner>> = (0..tree.frames.count() as u32)
        .map(|number| {
            let frame = FrameId(number);
            let (module, symbol) = (tree.frames.module(frame), tree.frames.symbol(frame));
            match own.owner(module, symbol, tree.frames.file(frame)) {
                Owner::Runtime if allocators.matches(module, symbol) => None,
                owner => Some(owner),
            }
        })
        .collect();
    let mut found: Vec<(Option<FrameId>, Owner)> = vec![(None, Owner::Runtime); tree.count()];
    for stack in 1..tree.count() {
        let Some(frame) = tree.frame(stack as NamedStack) else { continue };
        let of_caller = found[tree.parent(stack as NamedStack) as usize];
        found[stack] = match owners[frame.0 as usize] {
            // Who comes first owns more of it.
            Some(owner) if owner <= of_caller.1 => {
                let named = named_near(tree, &owners, stack as NamedStack, owner).unwrap_or(frame);
                (Some(tree.frames.function(named)), owner)
            }
            None if of_caller.0.is_none() => (Some(tree.frames.function(frame)), Owner::Runtime),
            _ => of_caller,
        };
    }
    found
}

/// As [`OwnCode::place`]: of code without a name the nearest caller that has one.
fn named_near(
    tree: &SymbolTree,
    owners: &[Option<Owner>],
    stack: NamedStack,
    owner: Owner,
) -> Option<FrameId> {
    let has_name = |frame: FrameId| tree.frames.symbol(frame).is_some();
    let mut frames = tree.frames_of(stack);
    if frames.next().is_none_or(has_name) {
        return None;
    }
    frames.take(NAMED_WITHIN).find(|&frame| has_name(frame) && owners[frame.0 as usize] == Some(owner))
}

/// By stack: whether it, or one that it leads to, is to be named.
fn wanted_stacks(trace: &Trace, summary: &Summary) -> Vec<bool> {
    let mut chosen: Vec<StackIndex> = Vec::new();
    let mut choose = |most: usize, share: f64, amount: fn(&Amounts) -> u64| {
        let mut order: Vec<(u64, StackIndex)> = summary
            .by_stack
            .iter()
            .filter(|totals| totals.heap != HeapId::MMAP)
            .map(|totals| (amount(&totals.amounts), totals.stack))
            .filter(|(amount, _)| *amount > 0)
            .collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        let all: u64 =
            order.iter().map(|(amount, _)| amount).fold(0, |sum, amount| sum.saturating_add(*amount));
        let mut sum = 0_u64;
        for (amount, stack) in order.into_iter().take(most) {
            if sum as f64 > all as f64 * share {
                break;
            }
            sum = sum.saturating_add(amount);
            chosen.push(stack);
        }
    };
    choose(NAMED_HELD, NAMED_SHARE, |amounts| amounts.peak_bytes);
    choose(NAMED_HELD, NAMED_SHARE, |amounts| amounts.outstanding_bytes);
    choose(NAMED_MADE, 1.0, |amounts| amounts.total_count);
    choose(NAMED_MADE, 1.0, |amounts| amounts.temporary_count);
    choose(NAMED_MADE, 1.0, |amounts| amounts.realloc_count);
    choose(NAMED_MADE, 1.0, |amounts| amounts.peak_count);
    // What was held in between.
    for moment in &summary.course.moments {
        let mut rows: Vec<(u64, StackIndex)> =
            moment.rows.iter().map(|row| (row.live_bytes, row.stack)).collect();
        rows.sort_unstable_by(|a, b| b.cmp(a));
        chosen.extend(rows.into_iter().take(NAMED_MADE / 4).map(|(_, stack)| stack));
    }
    let stacks = trace.stacks();
    let mut wanted = vec![false; stacks.len()];
    for stack in chosen {
        let mut next = stack;
        while let Some(is_wanted) = wanted.get_mut(next.0 as usize).filter(|is_wanted| !**is_wanted) {
            *is_wanted = true;
            if next == StackIndex::EMPTY {
                break;
            }
            next = stacks.parent(next);
        }
    }
    wanted
}
