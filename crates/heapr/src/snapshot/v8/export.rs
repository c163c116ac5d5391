//! `heapr snapshot export`: one object with all that it keeps alive, as a snapshot of its own.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};

use crate::output::OutputFile;
use crate::snapshot::native::{GraphArguments, NativeHeap};
use crate::snapshot::v8::heap_file::{ObjectId, read};
use crate::snapshot::verbs::is_trace;

/// Arguments of `heapr snapshot export`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The object; of a native heap (.heapr) without it all of the heap, as DevTools opens it
    #[arg(value_name = "@ID")]
    object: Option<ObjectId>,
    /// The new snapshot
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the new file if it exists
    #[arg(short, long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: ExportArguments) -> anyhow::Result<ExitCode> {
    let Some(object) = arguments.object else {
        ensure!(is_trace(&arguments.file), "which object? A whole snapshot of V8 is there already");
        return write_whole(&arguments);
    };
    let snapshot = read(&arguments.file)?;
    let id = object.0;
    let node = snapshot.node_of_id(id).with_context(|| format!("the snapshot has no object @{id}"))?;
    let cannot = || format!("cannot write {}", arguments.output.display());
    let mut out = BufWriter::with_capacity(1 << 20, OutputFile::create(&arguments.output, arguments.force)?);
    snapshot.write_retained_by(node, &mut out).with_context(cannot)?;
    out.flush().with_context(cannot)?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(cannot)?.keep()?;
    Ok(ExitCode::SUCCESS)
}

/// Writes all of a native heap.
fn write_whole(arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    let heap = NativeHeap::of(&arguments.file, &GraphArguments::default())?;
    let cannot = || format!("cannot write {}", arguments.output.display());
    let mut out = BufWriter::with_capacity(1 << 20, OutputFile::create(&arguments.output, arguments.force)?);
    heap.write(&mut out).with_context(cannot)?;
    out.flush().with_context(cannot)?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(cannot)?.keep()?;
    Ok(ExitCode::SUCCESS)
}
