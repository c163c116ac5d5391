//! `heapr snapshot holders`: the amount of a native heap that each variable, stack frame or mapping
//! holds alone, so that it would be freed with it.
//!
//! ```text
//!  root --> libfoo.so!g_cache --> block --> block        both are held by g_cache
//!       --> thread 7, frame 2 run()+0x31 --> block <-- libfoo.so!g_list    by these two together
//! ```
//! If a file has several graphs of the process, growth since the first is shown, too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::ensure;
use heapr_server::{GraphHolder, GraphHolders};
use heapr_table::SortRows as _;
use heapr_table::quantity::{bytes, duration, plural};
use heapr_table::{Column, Table, row};

use super::graph_answers::GraphAnswers;
use super::graph_file::{ChosenGraph, GraphArguments};
use super::held::{Held, TOGETHER};
use crate::output::{OutputArguments, print_table};
use crate::snapshot::verbs::HeapKind;

/// Arguments of `heapr snapshot holders`.
#[derive(Debug, clap::Args)]
pub(crate) struct HoldersArguments {
    /// A trace with a snapshot with references (heapr snapshot take --graph), or a snapshot of
    /// objects that hold native memory (Python, Java)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    graph: GraphArguments,
    #[command(flatten)]
    output: OutputArguments,
}

impl HoldersArguments {
    /// Returns the file and the form of the answer if the file has a heap of objects.
    ///
    /// # Errors
    /// The file cannot be read, or an option that only traces have was given.
    pub(crate) fn of_objects(&self) -> anyhow::Result<Option<(&Path, &OutputArguments)>> {
        if HeapKind::of(std::slice::from_ref(&self.file))? != HeapKind::V8 {
            return Ok(None);
        }
        let GraphArguments { snapshot, pid, .. } = &self.graph;
        ensure!(
            snapshot.is_none() && pid.is_none(),
            "--snapshot, --pid: a file of objects has one snapshot of one process"
        );
        Ok(Some((&self.file, &self.output)))
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &HoldersArguments) -> anyhow::Result<ExitCode> {
    let GraphHoldersRead { answers, first, told } = read(&arguments.file, &arguments.graph)?;
    let file = Rc::clone(&answers.chosen);
    let all_bytes = told.block_bytes;
    let [of_one_bytes, of_several_bytes] = told.held_bytes;
    let mut title = vec![
        format!(
            "{}: snapshot {} at {} of {}: {} in {}",
            file.path.display(),
            file.snapshot.number,
            duration(file.snapshot.time_ns),
            file.process_name(),
            bytes(all_bytes),
            plural(u64::from(file.facts.node_count), "block"),
        ),
        format!(
            "{} are held by one alone, {} by several together; the rest is leaked, or small and shared",
            bytes(of_one_bytes),
            bytes(of_several_bytes)
        ),
    ];
    if let Some(first) = &first {
        let (number, at) = (first.chosen.snapshot.number, duration(first.chosen.snapshot.time_ns));
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
    table.fact("held_by_several_bytes", of_several_bytes);
    let lines = told.holders.into_iter().map(|holder| match holder.growth_bytes {
        Some(growth) => row![holder.retained_bytes, holder.retained_count, growth, holder.name],
        None => row![holder.retained_bytes, holder.retained_count, holder.name],
    });
    table.rows(arguments.output.top(), lines);
    print_table(&table, arguments.output.format, &title)?;
    answers.keep();
    first.into_iter().for_each(GraphAnswers::keep);
    Ok(ExitCode::SUCCESS)
}

/// Holders of a graph, and the answers that were read for them.
struct GraphHoldersRead {
    answers: GraphAnswers,
    /// The first graph of the process in the file.
    first: Option<GraphAnswers>,
    told: GraphHolders,
}

/// Returns the holders for the page.
pub(crate) fn shown_holders(path: &Path, asked: &GraphArguments) -> anyhow::Result<GraphHolders> {
    Ok(read(path, asked)?.told)
}

fn read(path: &Path, asked: &GraphArguments) -> anyhow::Result<GraphHoldersRead> {
    let mut answers = GraphAnswers::of(ChosenGraph::open(path, asked)?, &asked.names);
    let first = first_graph(&answers.chosen, path, asked)?;
    let mut first = first.map(|first| GraphAnswers::of(first, &asked.names));
    let before: Option<HashMap<String, Held>> = match &mut first {
        Some(first) => Some(first.holders()?.iter().cloned().collect()),
        None => None,
    };
    let growth = |name: &str, now: Held| {
        let was = before.as_ref()?.get(name).copied().unwrap_or_default();
        let growth = i128::from(now.bytes) - i128::from(was.bytes);
        Some(growth.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    };
    let block_bytes = answers.block_bytes()?;
    let held = answers.holders()?;
    // Holders that hold something only together have a row of their own.
    let mut rows: Vec<&(String, Held)> = held.iter().filter(|(_, held)| held.count > 0).collect();
    rows.sort_rows_by(|(one, of_one), (other, of_other)| {
        (of_other.bytes, of_other.count).cmp(&(of_one.bytes, of_one.count)).then_with(|| one.cmp(other))
    });
    let is_of_several = |(name, _): &&(String, Held)| name.starts_with(TOGETHER);
    let of_several_bytes: u64 = held.iter().filter(is_of_several).map(|(_, held)| held.bytes).sum();
    let all_held_bytes: u64 = held.iter().map(|(_, held)| held.bytes).sum();
    let holder = |(name, held): &(String, Held)| GraphHolder {
        name: name.clone(),
        retained_bytes: held.bytes,
        retained_count: held.count,
        growth_bytes: growth(name, *held),
    };
    let told = GraphHolders {
        holders: rows.into_iter().map(holder).collect(),
        block_bytes,
        held_bytes: [all_held_bytes - of_several_bytes, of_several_bytes],
        since: first.as_ref().map(|first| first.chosen.snapshot.number),
    };
    Ok(GraphHoldersRead { answers, first, told })
}

/// Returns the first graph of the process in the file, if it is not `file` itself.
fn first_graph(
    file: &ChosenGraph,
    path: &Path,
    asked: &GraphArguments,
) -> anyhow::Result<Option<ChosenGraph>> {
    let has_it = |snapshot: &&heapr_trace::Snapshot| {
        snapshot.number < file.snapshot.number && file.trace.graph_processes(snapshot).contains(&file.process)
    };
    let Some(first) = file.trace.snapshots().iter().find(has_it) else { return Ok(None) };
    let asked = GraphArguments { snapshot: Some(first.number.to_string()), ..asked.clone() };
    ChosenGraph::open(path, &asked).map(Some)
}
