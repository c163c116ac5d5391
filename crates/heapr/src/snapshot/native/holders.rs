//! `heapr snapshot holders`: which variable, stack frame or mapping holds how much of a native heap
//! alone: what would go with it.
//!
//! ```text
//!  root --> libfoo.so!g_cache --> block --> block        both are held by g_cache
//!       --> thread 7, frame 2 run()+0x31 --> block <-- libfoo.so!g_list    by no one alone
//! ```
//! In a file with several graphs of the process, with how much more each holds than at the first.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use heapr_graph::{Dominators, Graph, retained_bytes};
use heapr_table::quantity::{bytes, duration, plural};
use heapr_table::{Column, Table, row};
use heapr_trace::RootClass;

use super::graph_file::{GraphArguments, GraphFile};
use super::places::Places;
use crate::output::{OutputArguments, print_table};

/// Arguments of `heapr snapshot holders`.
#[derive(Debug, clap::Args)]
pub(crate) struct HoldersArguments {
    /// A trace with a snapshot with references (heapr snapshot take --graph)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    graph: GraphArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// What is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Held {
    bytes: u64,
    count: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &HoldersArguments) -> anyhow::Result<ExitCode> {
    let file = GraphFile::open(&arguments.file, &arguments.graph)?;
    let held = held_in(&file)?;
    let first = first_graph(&file, arguments)?;
    let before = first.as_ref().map(held_in).transpose()?;
    let growth = |name: &str, now: Held| {
        let was = before.as_ref()?.get(name).copied().unwrap_or_default();
        Some(i128::from(now.bytes) - i128::from(was.bytes))
    };
    let mut rows: Vec<(&String, &Held)> = held.iter().collect();
    rows.sort_by(|(one, of_one), (other, of_other)| {
        (of_other.bytes, of_other.count).cmp(&(of_one.bytes, of_one.count)).then_with(|| one.cmp(other))
    });
    let all_bytes: u64 = file.blocks.iter().map(|block| block.size_bytes).sum();
    let of_one_bytes: u64 = held.values().map(|held| held.bytes).sum();
    let mut title = vec![
        format!(
            "{}: snapshot {} at {} of {}: {} in {}",
            file.path.display(),
            file.snapshot.number,
            duration(file.snapshot.time_ns),
            file.process_name(),
            bytes(all_bytes),
            plural(file.blocks.len() as u64, "block"),
        ),
        format!("{} are held by one alone; the rest by several together, or leaked", bytes(of_one_bytes)),
    ];
    if let Some(first) = &first {
        let (number, at) = (first.snapshot.number, duration(first.snapshot.time_ns));
        title.push(format!("growth is since snapshot {number} at {at}"));
    }
    title.push(String::new());
    let retained = Column::bytes("retained_bytes", "Holds");
    let mut columns =
        vec![retained, Column::count("retained_count", "Blocks"), Column::text("holder", "Holder")];
    if first.is_some() {
        columns.insert(2, Column::bytes("growth_bytes", "Growth"));
    }
    let mut table = Table::new("heapr.holders/1", &columns);
    table.call_rows("holders");
    table.fact("heap", "native");
    table.fact("file", file.path.to_string_lossy());
    table.fact("snapshot", file.snapshot.number);
    table.fact("process", file.process_name());
    table.fact("block_bytes", all_bytes);
    table.fact("held_by_one_bytes", of_one_bytes);
    let lines = rows.into_iter().map(|(name, held)| match growth(name, *held) {
        Some(growth) => row![held.bytes, held.count, growth, name.clone()],
        None => row![held.bytes, held.count, name.clone()],
    });
    table.rows(arguments.output.top(), lines);
    print_table(&table, arguments.output.format, &title)?;
    Ok(ExitCode::SUCCESS)
}

/// The first graph of the same process in the file, if it is another one.
fn first_graph(file: &GraphFile, arguments: &HoldersArguments) -> anyhow::Result<Option<GraphFile>> {
    let has_it = |snapshot: &&heapr_trace::Snapshot| {
        snapshot.number < file.snapshot.number && file.trace.graph_processes(snapshot).contains(&file.process)
    };
    let Some(first) = file.trace.snapshots().iter().find(has_it) else { return Ok(None) };
    let asked = GraphArguments { snapshot: Some(first.number.to_string()), ..arguments.graph.clone() };
    GraphFile::open(&arguments.file, &asked).map(Some)
}

/// By holder what only it leads to.
fn held_in(file: &GraphFile) -> anyhow::Result<HashMap<String, Held>> {
    let graph = &file.graph;
    let mut places = Places::of(file);
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    // Of each reference from outside its holder and its block.
    let mut roots: Vec<(u32, u32)> = Vec::with_capacity(graph.roots.len());
    for root in &graph.roots {
        let area = &graph.areas[root.area as usize];
        let name = match area.class {
            RootClass::Global => {
                let name = places.name(area, root.offset_bytes);
                // Of a module that the recording does not know.
                if name.starts_with('+') { format!("{} {name}", places.area_name(area)) } else { name }
            }
            _ => places.area_name(area),
        };
        // A variable as a whole.
        let name = match area.class {
            RootClass::Global if name.contains('!') => name.split("+0x").next().unwrap_or(&name).to_owned(),
            _ => name,
        };
        let number = *numbers.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            names.len() as u32 - 1
        });
        roots.push((number, root.target));
    }
    roots.sort_unstable();
    roots.dedup();
    // Node 0 leads to the holders, these to blocks.
    let holder_count = names.len() as u32;
    let first_block = 1 + holder_count;
    let mut first_edge = vec![0_u32, holder_count];
    let mut targets: Vec<u32> = (1..=holder_count).collect();
    let mut roots = roots.into_iter().peekable();
    for holder in 0..holder_count {
        while let Some((_, target)) = roots.next_if(|root| root.0 == holder) {
            targets.push(first_block + target);
        }
        first_edge.push(targets.len() as u32);
    }
    let before = targets.len() as u32;
    targets.extend(graph.targets.iter().map(|target| first_block + target));
    first_edge.extend(graph.first_edge.iter().skip(1).map(|end| before + end));
    let rooted = Graph::new(first_edge, targets).context("the graph is too large")?;
    let dominators = Dominators::of(&rooted, 0, |_, _, _| true);
    let block = |node: u32| node.checked_sub(first_block).map(|block| &file.blocks[block as usize]);
    let held_bytes = retained_bytes(&dominators, |node| block(node).map_or(0, |block| block.size_bytes));
    let held_counts = retained_bytes(&dominators, |node| u64::from(block(node).is_some()));
    let held = names
        .into_iter()
        .enumerate()
        .map(|(number, name)| (name, Held { bytes: held_bytes[number + 1], count: held_counts[number + 1] }));
    Ok(held.collect())
}
