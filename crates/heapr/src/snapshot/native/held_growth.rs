//! Growth of what each holder holds alone from graph to graph, and where it collects new blocks.
//!
//! The graphs are read one after the other, and only the last stays in memory. A holder is
//! recognised by its name, a block by its address and the time of its allocation.

use std::collections::HashMap;
use std::path::PathBuf;

use heapr_native::HeldSums;
use heapr_query::{Confidence, CullList, GroupBy, StackGroups, Taken, Trend};
use heapr_table::SortRows as _;
use heapr_trace::ProcessIndex;

use super::block_names::BlockNames;
use super::graph_file::{ChosenGraph, GraphArguments, GraphFile};
use super::held::{Held, HeldHeap};
use super::series::{Chosen, SeriesArguments};
use crate::report::names::{NameArguments, TraceNames};

/// Most holders with details.
const DETAILED_MAX: usize = 50;
/// Most kinds of blocks listed of a holder.
const KINDS_MAX: usize = 5;

/// Snapshot with a graph.
#[derive(Clone)]
pub(super) struct GraphPoint {
    path: PathBuf,
    arguments: GraphArguments,
    number: u32,
    unix_ns: u64,
    time_ns: u64,
    /// Whether the process ran during the snapshot.
    is_running: bool,
}

impl GraphPoint {
    pub(super) fn choose(&self) -> anyhow::Result<ChosenGraph> {
        ChosenGraph::open(&self.path, &self.arguments)
    }

    fn open(&self) -> anyhow::Result<GraphFile> {
        GraphFile::open(&self.path, &self.arguments)
    }

    pub(super) fn names(&self) -> &NameArguments {
        &self.arguments.names
    }
}

/// Growth of one holder.
pub(super) struct HolderGrowth {
    pub(super) name: String,
    /// Amount held at each graph.
    pub(super) held_at: Vec<Held>,
    /// Amount held at the last graph that was allocated since the first; all of it if there is one
    /// graph.
    pub(super) new: Option<Held>,
    /// Confidence that the holder leaks; `None` without growth, or with too few graphs.
    pub(super) confidence: Option<Confidence>,
    /// Kinds of new blocks, most bytes first.
    pub(super) collects: Vec<(String, Held)>,
    pub(super) gathered: Option<Gathered>,
}

impl HolderGrowth {
    pub(super) fn last(&self) -> Held {
        self.held_at.last().copied().unwrap_or_default()
    }

    pub(super) fn growth_bytes(&self) -> i128 {
        let first = self.held_at.first().copied().unwrap_or_default();
        i128::from(self.last().bytes) - i128::from(first.bytes)
    }
}

/// Block that collects most of the growth.
pub(super) struct Gathered {
    /// Names and addresses of blocks from the holder on; this block is the last.
    pub(super) way: Vec<(String, u64)>,
    pub(super) reference_count: u64,
    /// References of this block at the first graph.
    pub(super) references_before: Option<u64>,
    pub(super) retained_bytes: u64,
    pub(super) is_chain: bool,
}

/// Holders that differ; all holders if there is one graph.
pub(super) struct HeldGrowth {
    pub(super) points: Vec<GraphPoint>,
    pub(super) holders: Vec<HolderGrowth>,
    /// Bytes of all blocks at the last graph.
    pub(super) block_bytes: u64,
}

/// Returns the snapshots with a graph of the chosen process. Adds to `warnings` what is left out.
pub(super) fn points(
    taken: &[Taken],
    files: &[Chosen],
    asked: &SeriesArguments,
    warnings: &mut Vec<String>,
) -> Vec<GraphPoint> {
    let told = warnings.len();
    let pids: Vec<u32> = asked.filters.pid.iter().filter_map(|pid| pid.parse().ok()).collect();
    let mut points = Vec::new();
    for taken in taken {
        let Chosen { file, trace, .. } = &files[taken.file];
        let pid_of = |process: &ProcessIndex| trace.processes().get(process.0 as usize).map(|it| it.pid);
        let with_graph = trace.graph_processes(&taken.snapshot).into_iter();
        let with_graph = with_graph.filter_map(|it| Some((it, pid_of(&it)?)));
        let meant: Vec<(ProcessIndex, u32)> =
            with_graph.filter(|(_, pid)| pids.is_empty() || pids.contains(pid)).collect();
        let number = taken.snapshot.number;
        match meant.as_slice() {
            [] => {}
            &[(process, pid)] => points.push(GraphPoint {
                path: file.clone(),
                arguments: GraphArguments {
                    snapshot: Some(number.to_string()),
                    pid: Some(pid),
                    names: asked.names.clone(),
                },
                number,
                unix_ns: taken.unix_ns,
                time_ns: taken.snapshot.time_ns,
                is_running: matches!(
                    trace.graph_facts(&taken.snapshot, process),
                    Ok(Some(facts)) if facts.pause_ns == 0
                ),
            }),
            several => {
                let pids: Vec<String> = several.iter().map(|(_, pid)| pid.to_string()).collect();
                warnings.push(format!(
                    "snapshot {number} has graphs of several processes, none of which is looked at: --pid {}",
                    pids.join(" or ")
                ));
            }
        }
    }
    let points = comparable(points, warnings);
    warnings[told..].iter().for_each(|warning| warn!("{warning}"));
    points
}

/// Leaves out graphs taken while the process ran, if there are two or more of the stopped process.
/// Registers and owners of stacks are unknown while it runs, so that other holders would seem to
/// grow or shrink.
fn comparable(points: Vec<GraphPoint>, warnings: &mut Vec<String>) -> Vec<GraphPoint> {
    let (running, still): (Vec<GraphPoint>, Vec<GraphPoint>) =
        points.into_iter().partition(|point| point.is_running);
    if running.is_empty() || still.is_empty() {
        return [running, still].concat();
    }
    let numbers = running.iter().map(|point| point.number.to_string()).collect::<Vec<_>>().join(", ");
    if still.len() < 2 {
        warnings.push(format!(
            "snapshot {numbers} was taken while the process ran: what holds a block may seem another there"
        ));
        let mut points = [running, still].concat();
        points.sort_rows_by_key(|point| (point.unix_ns, point.time_ns));
        return points;
    }
    warnings.push(format!(
        "snapshot {numbers} was taken while the process ran: its graph is not compared with the others'"
    ));
    still
}

/// Returns address, allocation time and number of references of each block, sorted by address.
fn degrees(file: &GraphFile) -> Vec<(u64, u64, u32)> {
    let of = |(node, block): (usize, &heapr_trace::Block)| {
        (block.address_avma, block.alloc_ns, file.graph.edges(node as u32).len() as u32)
    };
    file.blocks.iter().enumerate().map(of).collect()
}

impl HeldGrowth {
    /// Reads the graphs. `is_one_recording`: allocation times are comparable, so that blocks can be
    /// told apart.
    pub(super) fn read(points: Vec<GraphPoint>, is_one_recording: bool) -> anyhow::Result<Option<Self>> {
        let [before @ .., last_point] = points.as_slice() else { return Ok(None) };
        let mut held_before: Vec<HashMap<String, Held>> = Vec::new();
        let mut first_degrees = Vec::new();
        for (number, point) in before.iter().enumerate() {
            let file = point.open()?;
            held_before.push(HeldHeap::of(&file)?.by_name(&file));
            if number == 0 && is_one_recording {
                first_degrees = degrees(&file);
            }
        }
        let file = last_point.open()?;
        let heap = HeldHeap::of(&file)?;
        let times: Vec<u64> = points.iter().map(|point| point.time_ns).collect();
        let last = Last {
            file: &file,
            heap: &heap,
            since_ns: before.first().filter(|_| is_one_recording).map(|first| first.time_ns),
            holder_of: heap.holders.by_block(),
            first_degrees,
        };
        let has_new = before.is_empty() || is_one_recording;
        let new = has_new.then(|| heap.held(&file, |node| last.is_new(node)));
        let kept_shares = last.kept_shares(&times);
        let mut holders = Vec::new();
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        for (number, held) in heap.held(&file, |_| true).into_iter().enumerate() {
            let name = &heap.names[number];
            numbers.insert(name, number as u32);
            let earlier = held_before.iter().map(|held| held.get(name).copied().unwrap_or_default());
            let held_at: Vec<Held> = earlier.chain([held]).collect();
            let amounts = held_at.iter().map(|held| held.bytes);
            let course: Vec<(u64, u64)> = points.iter().map(|point| point.unix_ns).zip(amounts).collect();
            let kept_share = kept_shares.get(number).copied().filter(|_| is_one_recording);
            let confidence = Trend::of(&course).and_then(|trend| Confidence::of(&trend, kept_share));
            holders.push(HolderGrowth {
                name: name.clone(),
                held_at,
                new: new.as_ref().map(|new| new[number]),
                confidence,
                collects: Vec::new(),
                gathered: None,
            });
        }
        // Holders that hold nothing at the last graph.
        let mut gone: Vec<&String> = held_before.iter().flat_map(HashMap::keys).collect();
        gone.sort_unstable();
        gone.dedup();
        for name in gone.into_iter().filter(|name| !numbers.contains_key(name.as_str())) {
            let earlier = held_before.iter().map(|held| held.get(name).copied().unwrap_or_default());
            holders.push(HolderGrowth {
                name: name.clone(),
                held_at: earlier.chain([Held::default()]).collect(),
                new: new.as_ref().map(|_| Held::default()),
                confidence: None,
                collects: Vec::new(),
                gathered: None,
            });
        }
        if !before.is_empty() {
            holders.retain(|holder| holder.held_at.windows(2).any(|pair| pair[0] != pair[1]));
        }
        holders.sort_rows_by(|one, other| {
            let key = |holder: &HolderGrowth| (holder.confidence, holder.growth_bytes(), holder.last().bytes);
            key(other).cmp(&key(one)).then_with(|| one.name.cmp(&other.name))
        });
        let block_bytes = file.blocks.iter().map(|block| block.size_bytes).sum();
        last.tell_more(&mut holders, &numbers, last_point.names());
        drop(numbers);
        Ok(Some(Self { holders, block_bytes, points }))
    }
}

/// Last graph.
struct Last<'f> {
    file: &'f GraphFile,
    heap: &'f HeldHeap,
    /// Time after which a block is new; `None` if all blocks count.
    since_ns: Option<u64>,
    holder_of: Vec<Option<u32>>,
    first_degrees: Vec<(u64, u64, u32)>,
}

impl Last<'_> {
    fn is_new(&self, node: u32) -> bool {
        self.since_ns.is_none_or(|since_ns| self.file.blocks[node as usize].alloc_ns > since_ns)
    }

    /// Returns for each holder the share of the intervals between graphs from which it still holds
    /// blocks.
    fn kept_shares(&self, times: &[u64]) -> Vec<f64> {
        let intervals = times.len().saturating_sub(1);
        let mut is_kept = vec![false; self.heap.names.len() * intervals];
        for (block, holder) in self.file.blocks.iter().zip(&self.holder_of) {
            let Some(holder) = holder else { continue };
            let interval = times.partition_point(|&time_ns| time_ns < block.alloc_ns);
            if (1..=intervals).contains(&interval) {
                is_kept[*holder as usize * intervals + interval - 1] = true;
            }
        }
        let share = |kept: &[bool]| kept.iter().filter(|&&is_kept| is_kept).count() as f64 / intervals as f64;
        is_kept.chunks(intervals.max(1)).map(share).collect()
    }

    /// Adds details on what the first of the holders collect.
    fn tell_more(&self, holders: &mut [HolderGrowth], numbers: &HashMap<&str, u32>, asked: &NameArguments) {
        let mut trace_names = TraceNames::new(&self.file.trace, asked);
        let stacks: std::collections::HashSet<_> = self.file.blocks.iter().map(|block| block.stack).collect();
        let cull = CullList::built_in();
        let groups = StackGroups::of_all(&self.file.trace, stacks, GroupBy::Stacks, &cull, &mut trace_names);
        let names = BlockNames::of(self.file, &groups, &mut trace_names);
        let mut kinds: HashMap<(u32, u32), Held> = HashMap::new();
        for node in 0..self.file.blocks.len() as u32 {
            if let Some(holder) = self.holder_of[node as usize]
                && self.is_new(node)
            {
                let sum = kinds.entry((holder, names.number(node))).or_default();
                sum.bytes += self.file.blocks[node as usize].size_bytes;
                sum.count += 1;
            }
        }
        let size = |node: u32| self.file.blocks[node as usize].size_bytes;
        let new_bytes = self.heap.holders.sums(|node| if self.is_new(node) { size(node) } else { 0 });
        let all_bytes = self.heap.holders.sums(size);
        for holder in holders.iter_mut().take(DETAILED_MAX) {
            let Some(&number) = numbers.get(holder.name.as_str()) else { continue };
            let of_it = kinds.iter().filter(|((of, _), _)| *of == number);
            let mut own: Vec<(&str, Held)> =
                of_it.map(|(&(_, kind), &held)| (names.text(kind), held)).collect();
            own.sort_rows_by(|(one, of_one), (other, of_other)| {
                (of_other.bytes, of_other.count).cmp(&(of_one.bytes, of_one.count)).then(one.cmp(other))
            });
            own.truncate(KINDS_MAX);
            holder.collects = own.into_iter().map(|(name, held)| (name.to_owned(), held)).collect();
            holder.gathered = self.gathered(number, &names, &new_bytes, &all_bytes);
        }
    }

    fn gathered(
        &self,
        holder: u32,
        names: &BlockNames,
        new_bytes: &HeldSums,
        all_bytes: &HeldSums,
    ) -> Option<Gathered> {
        let is_alike = |one: u32, other: u32| names.number(one) == names.number(other);
        let found = self.heap.holders.gathering(holder, new_bytes, is_alike)?;
        let &node = found.way.last()?;
        let block = &self.file.blocks[node as usize];
        let key = (block.address_avma, block.alloc_ns);
        let before =
            self.first_degrees.binary_search_by_key(&key, |&(address, alloc_ns, _)| (address, alloc_ns));
        let named = |&node: &u32| (names.name(node).to_owned(), self.file.blocks[node as usize].address_avma);
        Some(Gathered {
            way: found.way.iter().map(named).collect(),
            reference_count: self.file.graph.edges(node).len() as u64,
            references_before: before.ok().map(|place| u64::from(self.first_degrees[place].2)),
            retained_bytes: self.heap.holders.of_block(node, all_bytes),
            is_chain: found.is_chain,
        })
    }
}
