//! Graph of a trace: the blocks of a snapshot, sorted by address, and the references between them.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context as _, bail, ensure};
use heapr_filters::find_snapshot;
use heapr_table::quantity::bytes;
use heapr_trace::{Block, GraphFacts, HeapGraph, HeapId, ProcessIndex, Snapshot, Trace};

use crate::report::names::NameArguments;
use crate::trace_file::open;

/// Which graph of a file is meant.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(skip)]
pub(crate) struct GraphArguments {
    /// Which snapshot: its number, its name or `last` [default: the last with a graph]
    #[arg(long, value_name = "N|NAME")]
    pub(crate) snapshot: Option<String>,
    /// Process, if the snapshot has graphs of several
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    #[command(flatten)]
    pub(crate) names: NameArguments,
}

/// Graph that the arguments choose, not read yet.
pub(crate) struct ChosenGraph {
    pub(crate) path: PathBuf,
    pub(crate) trace: Trace,
    pub(crate) snapshot: Snapshot,
    pub(crate) process: ProcessIndex,
    pub(crate) facts: GraphFacts,
}

impl ChosenGraph {
    /// Opens a file and chooses the graph.
    pub(crate) fn open(path: &Path, asked: &GraphArguments) -> anyhow::Result<Self> {
        let trace = open(path)?;
        let snapshot =
            choose(&trace, asked.snapshot.as_deref()).with_context(|| path.display().to_string())?.clone();
        let process = choose_process(&trace, &snapshot, asked.pid)?;
        let facts = trace.graph_facts(&snapshot, process)?.context("the graph is not there any more")?;
        Ok(Self { path: path.to_owned(), trace, snapshot, process, facts })
    }

    /// Returns why blocks called possibly leaked may be in use. Reasons are memory missing from a
    /// core file, and an allocator most of whose memory was not seen to be allocated.
    pub(crate) fn doubt(&self) -> Option<String> {
        if self.facts.has_left_out {
            return Some(
                "what is possibly leaked may well be in use: the core file has not all memory of its process, and what is not \
                 in it may lead to them"
                    .to_owned(),
            );
        }
        let of_it = self.snapshot.processes.iter().find(|process| process.process == self.process);
        let (known, all) = (of_it?.block_bytes, self.facts.unknown_bytes);
        if all == 0 {
            return None;
        }
        let share = match known.min(all) as f64 * 100.0 / all as f64 {
            share if known > 0 && share < 1.0 => "less than 1".to_owned(),
            share => format!("{share:.0}"),
        };
        Some(format!(
            "what is possibly leaked may well be in use: blocks that were recorded fill {} of the {} that their allocator has \
             ({share} %); what lies in the rest, as blocks from before the recording, leads to them only in doubt",
            bytes(known),
            bytes(all)
        ))
    }

    /// Number of the process's live blocks outside of the graph: those of heaps other than malloc.
    pub(crate) fn not_judged_count(&self) -> u64 {
        let of_it = self.snapshot.processes.iter().find(|process| process.process == self.process);
        of_it.map_or(0, |of_it| of_it.block_count.saturating_sub(u64::from(self.facts.node_count)))
    }

    /// Names of the heaps other than malloc.
    pub(crate) fn other_heaps(&self) -> Vec<String> {
        let own = self.trace.heap_names().iter().filter(|heap| heap.process == self.process);
        let mut names: Vec<String> =
            own.map(|heap| heap.name.clone()).filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { vec!["mappings, or heaps without a name".to_owned()] } else { names }
    }

    /// Name and pid of the process.
    pub(crate) fn process_name(&self) -> String {
        let process = self.trace.processes().get(self.process.0 as usize);
        process.map_or_else(String::new, |process| format!("{} ({})", process.name(), process.pid))
    }
}

/// Graph that was read, with its blocks.
pub(crate) struct GraphFile {
    chosen: Rc<ChosenGraph>,
    /// Blocks, which are the nodes of the graph.
    pub(crate) blocks: Vec<Block>,
    pub(crate) graph: HeapGraph,
}

impl Deref for GraphFile {
    type Target = ChosenGraph;

    fn deref(&self) -> &ChosenGraph {
        &self.chosen
    }
}

impl GraphFile {
    /// Opens a file and reads the graph that the arguments choose.
    pub(crate) fn open(path: &Path, asked: &GraphArguments) -> anyhow::Result<Self> {
        Self::read(Rc::new(ChosenGraph::open(path, asked)?))
    }

    /// Reads a graph.
    pub(crate) fn read(chosen: Rc<ChosenGraph>) -> anyhow::Result<Self> {
        let ChosenGraph { path, trace, snapshot, process, .. } = &*chosen;
        let graph = trace.heap_graph(snapshot, *process)?.context("the graph is not there any more")?;
        let mut blocks = Vec::with_capacity(graph.node_count() as usize);
        let damage = trace.for_each_snapshot_block(snapshot, |block| {
            if block.process == *process && block.heap == HeapId::MALLOC {
                blocks.push(*block);
            }
        })?;
        blocks.sort_unstable_by_key(|block| block.address_avma);
        blocks.dedup_by_key(|block| block.address_avma);
        ensure!(
            damage.is_empty() && blocks.len() == graph.node_count() as usize,
            "{}: snapshot {} is damaged: it has {} of the {} blocks of its graph",
            path.display(),
            snapshot.number,
            blocks.len(),
            graph.node_count()
        );
        Ok(Self { chosen, blocks, graph })
    }

    /// Age of a block at the snapshot.
    pub(crate) fn age_ns(&self, node: u32) -> u64 {
        self.snapshot.time_ns.saturating_sub(self.blocks[node as usize].alloc_ns)
    }
}

fn choose<'t>(trace: &'t Trace, asked: Option<&str>) -> anyhow::Result<&'t Snapshot> {
    const HOW: &str = "heapr snapshot take --graph PID takes one with references";
    if let Some(text) = asked {
        let snapshot = find_snapshot(trace, text)?;
        ensure!(
            !trace.graph_processes(snapshot).is_empty(),
            "snapshot {} has no references between its blocks: {HOW}",
            snapshot.number
        );
        return Ok(snapshot);
    }
    let missing = trace.notices().iter().find(|notice| notice.is_of_a_missing_graph());
    let how = missing.map_or_else(|| HOW.to_owned(), |notice| notice.text.clone());
    let last = trace.snapshots().iter().rev().find(|snapshot| !trace.graph_processes(snapshot).is_empty());
    last.with_context(|| format!("no snapshot in it has references between its blocks: {how}"))
}

fn choose_process(trace: &Trace, snapshot: &Snapshot, pid: Option<u32>) -> anyhow::Result<ProcessIndex> {
    let found = trace.graph_processes(snapshot);
    let pid_of = |process: &ProcessIndex| trace.processes().get(process.0 as usize).map_or(0, |it| it.pid);
    let meant: Vec<ProcessIndex> =
        found.iter().copied().filter(|process| pid.is_none_or(|pid| pid_of(process) == pid)).collect();
    match meant.as_slice() {
        [process] => Ok(*process),
        [] => bail!("snapshot {} has no graph of process {}", snapshot.number, pid.unwrap_or_default()),
        several => {
            let pids: Vec<String> = several.iter().map(|process| pid_of(process).to_string()).collect();
            bail!("snapshot {} has graphs of several processes: --pid {}", snapshot.number, pids.join(" or "))
        }
    }
}
