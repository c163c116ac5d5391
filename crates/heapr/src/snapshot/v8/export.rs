//! `heapr snapshot export`: writes one object with all that it keeps alive, as a snapshot of its
//! own or as a graph for other tools.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use heapr_v8::{GraphForm, Snapshot};

use crate::output::OutputFile;
use crate::snapshot::native::{GraphArguments, NativeHeap};
use crate::snapshot::v8::heap_file::{ObjectId, read_and_tell};
use crate::snapshot::verbs::is_trace;

/// Arguments of `heapr snapshot export`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The object; without it all of the heap: of a native one (.heapr) as DevTools opens it
    #[arg(value_name = "@ID")]
    object: Option<ObjectId>,
    /// The new snapshot; what ends in .dot or .json is a graph for Graphviz, or its nodes and edges
    #[arg(short, long, value_name = "FILE", value_parser = crate::output::file_path())]
    output: PathBuf,
    /// Overwrite the new file if it exists
    #[arg(short, long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: ExportArguments) -> anyhow::Result<ExitCode> {
    if let Some(form) = graph_form(&arguments.output) {
        return write_graph(&arguments, form);
    }
    let Some(object) = arguments.object else {
        ensure!(is_trace(&arguments.file), "which object? A whole snapshot of V8 is there already");
        return write_whole(&arguments);
    };
    let snapshot = read_and_tell(&arguments.file)?;
    let node = node_of(&snapshot, object)?;
    let cannot = || format!("cannot write {}", arguments.output.display());
    let mut out = BufWriter::with_capacity(1 << 20, OutputFile::create(&arguments.output, arguments.force)?);
    snapshot.write_retained_by(node, &mut out).with_context(cannot)?;
    out.flush().with_context(cannot)?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(cannot)?.keep()?;
    Ok(ExitCode::SUCCESS)
}

fn node_of(snapshot: &Snapshot, object: ObjectId) -> anyhow::Result<u32> {
    let id = object.0;
    snapshot.node_of_id(id).with_context(|| format!("the snapshot has no object @{id}"))
}

/// Returns the form of a graph by the new file's name, if that is one of a graph.
fn graph_form(output: &Path) -> Option<GraphForm> {
    match output.extension()?.to_str()? {
        "dot" | "gv" => Some(GraphForm::Dot),
        "json" => Some(GraphForm::Json),
        _ => None,
    }
}

fn write_graph(arguments: &ExportArguments, form: GraphForm) -> anyhow::Result<ExitCode> {
    let snapshot = read_and_tell(&arguments.file)?;
    let node = arguments.object.map(|object| node_of(&snapshot, object)).transpose()?;
    let cannot = || format!("cannot write {}", arguments.output.display());
    let mut out = BufWriter::with_capacity(1 << 20, OutputFile::create(&arguments.output, arguments.force)?);
    snapshot.write_graph(node, form, &mut out).with_context(cannot)?;
    out.flush().with_context(cannot)?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(cannot)?.keep()?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the whole of a native heap.
fn write_whole(arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    let heap = NativeHeap::of(&arguments.file, &GraphArguments::default())?;
    let cannot = || format!("cannot write {}", arguments.output.display());
    let mut out = BufWriter::with_capacity(1 << 20, OutputFile::create(&arguments.output, arguments.force)?);
    heap.write(&mut out).with_context(cannot)?;
    out.flush().with_context(cannot)?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(cannot)?.keep()?;
    Ok(ExitCode::SUCCESS)
}
