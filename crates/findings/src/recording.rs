//! Recording as input of the findings: the amounts of each own function over time.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use heapr_query::engine::{CodeTable, FrameId, HeldTree, JudgedFrames, NamedStack, RowSource, SymbolTree};
use heapr_query::{
    FrameText, NoSymbols, OwnCode, Owner, PackageSource, Suppressions, SymbolSource, summary_and_rows,
};
use heapr_table::quantity::{bytes_within, duration, percent};
use heapr_trace::{
    BlockEstimate, CourseRow, Damage, HeapId, ProcessIndex, StackIndex, StackTotals, Summary, Trace,
};

use crate::estimated::Estimated;
use crate::judged::Judged;
use crate::lost_blocks::LostBlocks;
use crate::site::{RestOwner, Site};
use crate::wanted_stacks::wanted_stacks;
use crate::whole_course::{WholeCourse, is_told};
use crate::work_time::WorkTime;

/// Smallest mean number of blocks made between two moments that measures a program's work.
const BLOCKS_PER_MOMENT_MIN: u64 = 16;

/// Recording, see the module.
pub(crate) struct Recording<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) own: &'a OwnCode,
    pub(crate) packages: &'a dyn PackageSource,
    /// Summary without its totals by stack, which are in `rows`.
    pub(crate) summary: Summary,
    /// Totals by stack.
    rows: RowSource<'a>,
    /// By stack: whether it, or a stack that it calls, is worth a name.
    pub(crate) is_wanted: Vec<bool>,
    /// Damaged parts of the file whose data are in no number.
    pub(crate) damage: Vec<Damage>,
    pub(crate) tree: HeldTree<'a>,
    /// Live bytes at all moments, including those without stacks.
    pub(crate) whole_course: WholeCourse,
    /// Times of the moments that have stacks.
    pub(crate) times_ns: Vec<u64>,
    /// By moment: blocks made until then in all processes, which measures the work. Times, if the
    /// source records no numbers of blocks.
    pub(crate) work_done: Vec<u64>,
    pub(crate) sites: Vec<Site>,
    /// By stack: number of its site; `u32::MAX`: of none.
    pub(crate) site_of: Vec<u32>,
    /// By caller: the owner of the small stacks that are summed there.
    pub(crate) rest_owners: HashMap<StackIndex, RestOwner>,
    /// By process: the live bytes of its sites by moment, and the time of its work.
    pub(crate) processes: Vec<WorkTime>,
    /// By process: its blocks at the last snapshot with references; unset until needed.
    pub(crate) lost_blocks: Vec<OnceCell<Option<LostBlocks>>>,
    /// Name of the file in commands.
    pub(crate) file: String,
    /// Formatter of its amounts.
    pub(crate) said: Estimated,
}

/// Sources of the names of stacks.
pub(crate) struct Names<'a, 's> {
    /// Names that are known already.
    pub(crate) known: Option<&'a SymbolTree>,
    /// Source of further names; `None`: no further names are looked up.
    pub(crate) symbols: Option<&'s mut dyn SymbolSource>,
}

impl<'a> Names<'a, '_> {
    /// Chooses the known tree, if it names all wanted stacks or no further source exists. Otherwise
    /// builds a tree.
    fn tree(self, trace: &Trace, is_wanted: &[bool]) -> HeldTree<'a> {
        let names_all = |tree: &SymbolTree| {
            let mut wanted = (1_u32..).zip(is_wanted.iter().skip(1)).filter(|(_, is_wanted)| **is_wanted);
            wanted.all(|(stack, _)| tree.named(StackIndex(stack)) != 0)
        };
        match (self.known, self.symbols) {
            (Some(tree), None) => HeldTree::Shared(tree),
            (Some(tree), _) if names_all(tree) => HeldTree::Shared(tree),
            (_, symbols) => {
                let mut nobody = NoSymbols;
                let symbols = symbols.unwrap_or(&mut nobody);
                let codes = CodeTable::new(trace.mappings());
                HeldTree::Own(Box::new(SymbolTree::build(trace, codes, symbols, is_wanted.to_vec())))
            }
        }
    }
}

impl<'a> Recording<'a> {
    /// Reads the summary and the course, and names the stacks that matter.
    pub(crate) fn new(
        trace: &'a Trace,
        judged: Judged<'a>,
        names: Names<'a, '_>,
    ) -> heapr_query::Result<Self> {
        let (mut summary, rows, damage) = summary_and_rows(trace)?;
        let whole_course = WholeCourse::of(&summary.course.moments);
        summary.course.moments.retain(is_told);
        let is_wanted = wanted_stacks(trace, &rows, &summary.course)?;
        let tree = names.tree(trace, &is_wanted);
        let mut recording = Self::grouped(trace, judged, (summary, rows, damage), (tree, is_wanted));
        recording.whole_course = whole_course;
        Ok(recording)
    }

    fn grouped(
        trace: &'a Trace,
        judged: Judged<'a>,
        (summary, rows, mut damage): (Summary, RowSource<'a>, Vec<Damage>),
        (tree, is_wanted): (HeldTree<'a>, Vec<bool>),
    ) -> Self {
        // Totals that the recorder has written include events that are damaged in the file.
        if trace.summary_totals().is_ok_and(|written| written.is_none()) {
            damage.extend_from_slice(trace.damage());
        }
        let said = Estimated::of(trace.sampling(), &summary.totals);
        let times_ns: Vec<u64> = summary.course.moments.iter().map(|moment| moment.time_ns).collect();
        let made: Vec<u64> = summary.course.moments.iter().map(|moment| moment.total_count).collect();
        // Time replaces work if the source records no numbers of blocks, or if the program makes
        // too few for a measure.
        let is_few = made.last().is_some_and(|&made| made < BLOCKS_PER_MOMENT_MIN * times_ns.len() as u64);
        let work_done = if trace.sampling().untold().counts || is_few { times_ns.clone() } else { made };
        let mut recording = Self {
            trace,
            own: judged.own,
            packages: judged.packages,
            summary,
            rows,
            whole_course: WholeCourse::default(),
            is_wanted,
            damage,
            tree,
            times_ns,
            work_done,
            sites: Vec::new(),
            site_of: Vec::new(),
            rest_owners: HashMap::new(),
            processes: Vec::new(),
            lost_blocks: trace.processes().iter().map(|_| OnceCell::new()).collect(),
            file: judged.file.to_owned(),
            said,
        };
        recording.add_sites();
        let removed = recording.leave_out(judged.left_out);
        // The amounts of a process include those of left out functions.
        recording.processes = recording.work_times();
        recording.leave_out_rests(&removed);
        recording
    }

    /// Time of work of each process. The amounts are those of all its stacks, as far as the file
    /// tells them. If there is one process, all that is live is its own.
    fn work_times(&self) -> Vec<WorkTime> {
        let of = (self.trace, &self.times_ns[..], &self.work_done[..], &self.sites[..]);
        let count = self.trace.processes().len();
        let lives: Option<Vec<Vec<u64>>> = match count {
            1 => Some(vec![self.summary.course.moments.iter().map(|moment| moment.live_bytes).collect()]),
            _ => self.all_live(),
        };
        let mut left = vec![0_u64; count];
        self.for_each_total(|totals| {
            let process = match totals.stack {
                StackIndex::EMPTY => totals.process,
                stack => self.process_of(stack),
            };
            if let Some(sum) = left.get_mut(process.0 as usize) {
                *sum = sum.saturating_add(totals.amounts.outstanding_bytes);
            }
        });
        let work = |(number, &left): (u32, &u64)| {
            let lives = lives.as_ref().and_then(|lives| lives.get(number as usize));
            WorkTime::with(of, ProcessIndex(number), lives.map(|lives| (&lives[..], left)))
        };
        (0..).zip(&left).map(work).collect()
    }

    /// References to the blocks of a process, if a snapshot tells them.
    pub(crate) fn referred(&self, process: ProcessIndex) -> Option<&LostBlocks> {
        let cell = self.lost_blocks.get(process.0 as usize)?;
        cell.get_or_init(|| LostBlocks::of(self.trace, process)).as_ref()
    }

    /// Number of a stack in the tree of names, if it is worth a name.
    pub(crate) fn wanted_name(&self, stack: StackIndex) -> Option<NamedStack> {
        let is_wanted = self.is_wanted.get(stack.0 as usize).copied().unwrap_or(false);
        Some(self.tree.named(stack)).filter(|&named| is_wanted && named != 0)
    }

    /// Visits the totals of all stacks except those of mappings.
    pub(crate) fn for_each_total(&self, mut visit: impl FnMut(&StackTotals)) {
        // The rows have been read before, so reading succeeds.
        let _ = self.rows.for_each(|totals| {
            if totals.heap != HeapId::MMAP {
                visit(totals);
            }
        });
    }

    /// Median of the live bytes, and live bytes at the end of a process's work. If several
    /// processes worked, the numbers are those of all, because the peak is of all.
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

    /// Formats bytes in unknown blocks: their sizes are assumed to be those at the peak.
    pub(crate) fn bytes(&self, bytes: u64) -> String {
        self.said.bytes(bytes)
    }

    /// Half of the interval of bytes in unknown blocks.
    pub(crate) fn half_of_bytes(&self, bytes: u64) -> u64 {
        self.said.half_of_bytes(bytes)
    }

    /// All blocks that were live at the peak.
    pub(crate) fn peak(&self) -> BlockEstimate {
        self.summary.totals.amounts().at_peak()
    }

    /// Amounts of all stacks at a moment, with their processes.
    pub(crate) fn rows(&self, place: usize) -> impl Iterator<Item = (ProcessIndex, &CourseRow)> {
        let moment = self.summary.course.moments.get(place);
        moment.into_iter().flat_map(|moment| moment.rows.iter().map(|row| (moment.time_ns, row))).filter_map(
            |(time_ns, row)| {
                let process = self.process_of(row.stack);
                let known = self.trace.processes().get(process.0 as usize);
                // Blocks that an ended process has left are no longer live.
                let has_ended =
                    known.and_then(|process| process.end_ns).is_some_and(|end_ns| end_ns < time_ns);
                (!has_ended).then_some((process, row))
            },
        )
    }

    /// Number of a stack in the tree of names. Stacks too small to be named have that of the
    /// nearest named caller.
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

    /// Process of a stack.
    pub(crate) fn process_of(&self, stack: StackIndex) -> ProcessIndex {
        self.trace.stacks().process(stack).unwrap_or(ProcessIndex(0))
    }

    /// Removes the sites that suppressions match. Returns their numbers.
    fn leave_out(&mut self, rules: &Suppressions) -> HashSet<u32> {
        let before: Vec<u32> = self.sites.iter().map(|site| site.number).collect();
        self.leave_out_sites(rules);
        let kept: HashSet<u32> = self.sites.iter().map(|site| site.number).collect();
        before.into_iter().filter(|number| !kept.contains(number)).collect()
    }

    fn leave_out_sites(&mut self, rules: &Suppressions) {
        let (tree, trace) = (&self.tree, self.trace);
        if rules.are_of_names() {
            // The stacks of most sites share frames.
            let mut judged = JudgedFrames::new(rules, tree.frames.count());
            let mut frames: Vec<FrameId> = Vec::new();
            self.sites.retain(|site| {
                frames.clear();
                frames.extend(tree.frames_of(tree.named(site.stack)));
                judged.rule_for(&frames, |frame| tree.text(frame)).is_none()
            });
            return;
        }
        let views = |site: &Site| tree.views(trace, site.stack, tree.named(site.stack));
        self.sites.retain(|site| {
            let texts: Vec<FrameText<'_>> = views(site).iter().map(FrameText::from).collect();
            rules.rule_for(&texts).is_none()
        });
    }

    /// End of work of the process that frees most as it ends. `None` if it frees less than a
    /// quarter of the peak.
    pub(crate) fn work_end_ns(&self) -> Option<u64> {
        let freed = |work: &&WorkTime| work.teardown.map_or(0, |(freed, _)| freed);
        let work = self.processes.iter().max_by_key(freed)?;
        let is_large = freed(&work).saturating_mul(4) >= self.summary.totals.peak_bytes.max(1);
        self.times_ns.get(work.end.checked_sub(1)?).copied().filter(|_| is_large)
    }

    /// Whether findings may name a site. The code must be the program's or a library's. The
    /// runtime's is accepted if the program is an interpreter without recorded functions of what it
    /// runs.
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

    /// Half intervals of a curve's amounts; empty if the amounts are counts.
    pub(crate) fn halves_of_curve(&self, curve: &[(u64, u64)]) -> Vec<u64> {
        if self.trace.sampling().is_exact() {
            return Vec::new();
        }
        curve.iter().map(|&(_, bytes)| self.half_of_bytes(bytes)).collect()
    }

    /// Formats a time: `at 1.23 s`, or how far into the file, if that has no times.
    pub(crate) fn when(&self, time_ns: u64) -> String {
        match self.trace.sampling().untold().times {
            true => way_through(time_ns, self.trace.duration_ns()),
            false => format!("at {}", duration(time_ns)),
        }
    }

    /// Formats a time: `after 1.23 s`; see [`Recording::when`].
    pub(crate) fn after(&self, time_ns: u64) -> String {
        match self.trace.sampling().untold().times {
            true => self.when(time_ns),
            false => format!("after {}", duration(time_ns)),
        }
    }

    /// Formats a rate of growth: `1.23 MiB ± 99 KiB a second more`, or only the growth, if the file
    /// has no times.
    pub(crate) fn rate(&self, growth_bytes: u64, half_bytes: u64, from_ns: u64, to_ns: u64) -> String {
        if self.trace.sampling().untold().times {
            return format!("{} more than {}", bytes_within(growth_bytes, half_bytes), self.when(from_ns));
        }
        let per_second =
            |bytes: u64| (bytes as f64 / to_ns.saturating_sub(from_ns).max(1) as f64 * 1e9) as u64;
        let rate = [growth_bytes, half_bytes].map(per_second);
        match rate {
            [0..1024, _] => {
                let [rate, half] = rate.map(|bytes| bytes.saturating_mul(3600));
                format!("{} an hour more", bytes_within(rate, half))
            }
            [rate, half] => format!("{} a second more", bytes_within(rate, half)),
        }
    }

    /// Live bytes of a site over time.
    pub(crate) fn curve(&self, site: &Site) -> Vec<(u64, u64)> {
        self.times_ns.iter().zip(&site.held).map(|(&time_ns, held)| (time_ns, held.bytes)).collect()
    }

    /// Half intervals of the amounts of a site's curve; empty if they are counts.
    pub(crate) fn halves(&self, site: &Site) -> Vec<u64> {
        if self.trace.sampling().is_exact() {
            return Vec::new();
        }
        site.held.iter().map(|held| held.live().bytes_plus_minus()).collect()
    }
}

/// A moment of a file without times: its place between the first and the last one.
fn way_through(moment: u64, last: u64) -> String {
    /// Share of the whole that stands for its first or last moment.
    const EDGE: u64 = 2000;
    match last / EDGE {
        edge if moment.saturating_add(edge) >= last => "at the end".to_owned(),
        edge if moment <= edge => "at the beginning".to_owned(),
        _ => format!("{} of the way through", percent(moment, last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_moment_of_a_file_without_times_have_words() {
        let words = [0, 3, 400, 9_996, 10_000].map(|moment| way_through(moment, 10_000));
        assert_eq!(
            words,
            ["at the beginning", "at the beginning", "4.0 % of the way through", "at the end", "at the end"]
        );
        assert_eq!(way_through(0, 0), "at the end");
    }
}
