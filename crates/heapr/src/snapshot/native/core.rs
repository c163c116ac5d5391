//! `heapr snapshot graph --core`: the graph of a process that has ended, from its core file.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_session::{CoreRequest, snapshot_of_core};
use heapr_table::quantity::{bytes, plural};
use serde_json::json;

use crate::graph_contents::{Contents, contents};
use crate::output::already_exists;
use crate::snapshot_take::Format;

/// Arguments of `heapr snapshot graph`.
#[derive(Debug, clap::Args)]
pub(crate) struct GraphOfArguments {
    /// A core file of a 64-bit x86 process: of the kernel, systemd-coredump (coredumpctl dump) or
    /// gcore
    #[arg(long, value_name = "FILE")]
    core: PathBuf,
    /// The program that it is of, where that is not at its path any more
    #[arg(value_name = "EXE")]
    executable: Option<PathBuf>,
    /// Root of the files of the machine that it is from
    #[arg(long, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    /// The trace to write [default: the core's name with .heapr]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Contents of blocks that are written [default: no contents]
    #[arg(long, value_enum, value_name = "WHAT")]
    contents: Option<Contents>,
    /// Overwrite it
    #[arg(short, long)]
    force: bool,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command.
pub(crate) fn run(arguments: GraphOfArguments) -> anyhow::Result<ExitCode> {
    let GraphOfArguments { core, executable, sysroot, output, contents: asked, force, quiet, format } =
        arguments;
    let output = output.unwrap_or_else(|| {
        let name = core.file_name().unwrap_or_default().to_string_lossy().into_owned();
        PathBuf::from(format!("{name}.heapr"))
    });
    if !force && output.symlink_metadata().is_ok() {
        return Err(already_exists(&output));
    }
    let contents = contents(asked);
    let request = CoreRequest { core, executable, sysroot, output, contents, overwrites: force };
    let taken = snapshot_of_core(&request)?;
    if format == Format::Json {
        crate::plain_text::say_json(&json!({
            "schema": "heapr.snapshot.graph/1",
            "file": request.output.to_string_lossy(),
            "block_count": taken.block_count,
            "block_bytes": taken.block_bytes,
            "reference_count": taken.reference_count,
            "thread_count": taken.thread_count,
            "notes": taken.notes,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    if !quiet {
        say!(
            "{}: {} in {}, {}, {}",
            request.output.display(),
            bytes(taken.block_bytes),
            plural(taken.block_count, "block"),
            plural(taken.reference_count, "reference"),
            plural(taken.thread_count as u64, "thread"),
        );
        for note in &taken.notes {
            say!("  not seen: {note}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
