//! Leaks of a graph, summed by where the blocks were allocated.

use std::collections::{BTreeMap, HashMap, HashSet};

use heapr_native::{LeakKind, Leaks, Verdicts};
use heapr_query::{CullList, FrameView, GroupBy, StackGroups, file_name};
use heapr_trace::{StackIndex, Trace};
use serde::{Deserialize, Serialize};

use super::graph_file::GraphFile;
use super::later_frees::LaterFrees;
use crate::report::names::TraceNames;

/// All kinds, in the order of [`LeakSums::by_kind`].
pub(super) const KINDS: [LeakKind; 3] = [LeakKind::Definite, LeakKind::Possible, LeakKind::Indirect];

/// Sums of a graph's leaks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LeakSums {
    by_kind: [Vec<LeakSum>; 3],
    /// Recorded time after the snapshot, in ns.
    pub(super) watched_ns: u64,
}

/// Leaks with the same kind, stack and type that were allocated between the same two snapshots.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct LeakSum {
    stack: u32,
    /// Index in the graph's list of types plus one; 0 if the type is unknown.
    pub(super) type_number: u32,
    /// Number of the file's snapshots taken before these blocks were allocated.
    pub(super) after_snapshots: u32,
    /// Whether the recording shows that they were freed after the snapshot.
    pub(super) is_struck: bool,
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) retained_bytes: u64,
    pub(super) circle_count: u64,
    pub(super) youngest_ns: u64,
    pub(super) oldest_ns: u64,
}

impl LeakSum {
    pub(super) fn stack(&self) -> StackIndex {
        StackIndex(self.stack)
    }

    /// Adds the amounts of another sum.
    pub(super) fn add(&mut self, other: &Self) {
        if self.count == 0 {
            self.youngest_ns = u64::MAX;
        }
        self.stack = other.stack;
        self.count += other.count;
        self.bytes += other.bytes;
        self.retained_bytes += other.retained_bytes;
        self.circle_count += other.circle_count;
        self.youngest_ns = self.youngest_ns.min(other.youngest_ns);
        self.oldest_ns = self.oldest_ns.max(other.oldest_ns);
    }
}

/// Returns the times of a file's snapshots.
fn snapshot_times(trace: &Trace) -> Vec<u64> {
    let mut times: Vec<u64> = trace.snapshots().iter().map(|snapshot| snapshot.time_ns).collect();
    times.sort_unstable();
    times
}

/// Returns the number of snapshots until `time_ns`. Blocks allocated later have at least this
/// number in [`LeakSum::after_snapshots`].
pub(super) fn snapshots_until(trace: &Trace, time_ns: u64) -> u32 {
    snapshot_times(trace).partition_point(|&taken_ns| taken_ns <= time_ns) as u32
}

impl LeakSums {
    pub(super) fn of(file: &GraphFile, names: &mut TraceNames) -> anyhow::Result<Self> {
        let stacks: HashSet<StackIndex> = file.blocks.iter().map(|block| block.stack).collect();
        let cull = CullList::built_in();
        let groups = StackGroups::of_all(&file.trace, stacks, GroupBy::Stacks, &cull, names);
        let leaks = find_leaks(file, &groups);
        let mut is_leaked = vec![false; file.blocks.len()];
        leaks.leaks.iter().for_each(|leak| is_leaked[leak.node as usize] = true);
        let later = LaterFrees::of(file, |node| is_leaked[node as usize])?;
        let times = snapshot_times(&file.trace);
        let mut sums: [BTreeMap<_, LeakSum>; 3] = Default::default();
        let of_another = retained_by_same(&leaks, |node| file.blocks[node as usize].stack);
        for (leak, is_of_another) in leaks.leaks.iter().zip(of_another) {
            let block = &file.blocks[leak.node as usize];
            let age_ns = file.age_ns(leak.node);
            let one = LeakSum {
                stack: block.stack.0,
                type_number: file.graph.types.get(leak.node as usize).copied().unwrap_or(0),
                after_snapshots: times.partition_point(|&taken_ns| taken_ns < block.alloc_ns) as u32,
                is_struck: later.freed.contains(&leak.node),
                count: 1,
                bytes: block.size_bytes,
                retained_bytes: if is_of_another { 0 } else { leak.retained_bytes },
                circle_count: u64::from(leak.is_circle),
                youngest_ns: age_ns,
                oldest_ns: age_ns,
            };
            let key = (one.stack, one.type_number, one.after_snapshots, one.is_struck);
            let known = sums[place(leak.kind)].entry(key);
            known.and_modify(|sum| sum.add(&one)).or_insert(one);
        }
        Ok(Self { by_kind: sums.map(|sums| sums.into_values().collect()), watched_ns: later.watched_ns })
    }

    /// Returns all sums with their kinds.
    pub(super) fn all(&self) -> impl Iterator<Item = (LeakKind, &LeakSum)> {
        KINDS.into_iter().zip(&self.by_kind).flat_map(|(kind, sums)| sums.iter().map(move |sum| (kind, sum)))
    }

    /// Whether a file with this many stacks can have these sums.
    pub(super) fn fits(&self, stack_count: usize) -> bool {
        self.all().all(|(_, sum)| (sum.stack as usize) < stack_count)
    }
}

/// Returns for each leak whether one of the same kind and stack retains it, so that their sum
/// contains it once.
fn retained_by_same(leaks: &Leaks, stack: impl Fn(u32) -> StackIndex) -> Vec<bool> {
    let all = &leaks.leaks;
    let place = |node: u32| all.binary_search_by_key(&node, |leak| leak.node).ok();
    let above: Vec<Option<usize>> = all.iter().map(|leak| leak.below.and_then(place)).collect();
    // Children of all leaks, one leak after the other.
    let mut first = vec![0_u32; all.len() + 1];
    above.iter().flatten().for_each(|&parent| first[parent] += 1);
    let mut end = 0;
    for slot in &mut first {
        end += *slot;
        *slot = end;
    }
    let mut children = vec![0_u32; end as usize];
    for (child, parent) in above.iter().enumerate() {
        let Some(parent) = *parent else { continue };
        first[parent] -= 1;
        children[first[parent] as usize] = child as u32;
    }
    // Goes down from each leak that no other retains, and counts the kinds on the path.
    let mut is_retained = vec![false; all.len()];
    let mut on_way: HashMap<(LeakKind, StackIndex), u32> = HashMap::new();
    let tops = (0..all.len()).filter(|&place| above[place].is_none());
    let mut next: Vec<(u32, bool)> = tops.map(|place| (place as u32, true)).collect();
    while let Some((at, is_entered)) = next.pop() {
        let leak = &all[at as usize];
        let count = on_way.entry((leak.kind, stack(leak.node))).or_default();
        if !is_entered {
            *count -= 1;
            continue;
        }
        is_retained[at as usize] = *count > 0;
        *count += 1;
        next.push((at, false));
        let range = first[at as usize] as usize..first[at as usize + 1] as usize;
        next.extend(children[range].iter().map(|&child| (child, true)));
    }
    is_retained
}

fn place(kind: LeakKind) -> usize {
    KINDS.iter().position(|&known| known == kind).unwrap_or(0)
}

/// Returns the groups of the loader's own allocations, some of which it references in hidden ways.
fn loader_groups(groups: &StackGroups<'_>) -> HashSet<Option<u32>> {
    let is_loader = |frame: &FrameView<'_>| {
        frame.module.is_some_and(|module| heapr_known::glibc::is_loader(file_name(module)))
    };
    let all = (0..groups.len() as u32).filter(|&group| groups.frames(group).first().is_some_and(is_loader));
    all.map(Some).collect()
}

/// Finds the leaks of a graph.
pub(super) fn find_leaks(file: &GraphFile, groups: &StackGroups<'_>) -> Leaks {
    let of_loader = loader_groups(groups);
    let is_kept = |node: u32| of_loader.contains(&groups.group_of(file.blocks[node as usize].stack));
    let verdicts = Verdicts::of(&file.graph, is_kept);
    Leaks::of(
        &file.graph,
        &verdicts,
        |node| file.blocks[node as usize].size_bytes,
        |node| file.blocks[node as usize].alloc_ns,
    )
}
