//! `heapr snapshot graph --core`: the graph of a process that has ended, from its core file.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_managed::Interpreter;
use heapr_session::{CoreRequest, ManagedCoreRequest, managed_runtime_of_core, snapshot_of_core};
use heapr_table::quantity::{bytes, plural};
use serde_json::json;

use crate::graph_contents::{Contents, contents};
use crate::output::already_exists;
use crate::snapshot::managed::{CoreOutput, take_of_core};
use crate::snapshot_take::Format;

/// Arguments of `heapr snapshot graph`.
#[derive(Debug, clap::Args)]
pub(crate) struct GraphOfArguments {
    /// A core file of a 64-bit process of x86 or Arm: of the kernel, systemd-coredump (coredumpctl
    /// dump) or gcore
    #[arg(long, value_name = "FILE")]
    core: PathBuf,
    /// The program that it is of, where that is not at its path any more
    #[arg(value_name = "EXE")]
    executable: Option<PathBuf>,
    /// Root of the files of the machine that it is from
    #[arg(long, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    /// Heap to read: blocks of the C library, or objects of CPython or Ruby
    #[arg(long, value_enum, value_name = "HEAP", default_value_t = CoreHeap::Native)]
    heap: CoreHeap,
    /// The trace or the snapshot to write [default: the core's name with .heapr or .heapsnapshot]
    #[arg(short, long, value_name = "FILE", value_parser = crate::output::file_path())]
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

/// Heap of a core file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CoreHeap {
    /// Blocks of the C library's heap
    Native,
    /// Objects of CPython, 3.8 to 3.15
    Python,
    /// Objects of Ruby, 3.1 and 3.3
    Ruby,
}

impl CoreHeap {
    const fn interpreter(self) -> Option<Interpreter> {
        match self {
            Self::Native => None,
            Self::Python => Some(Interpreter::Python),
            Self::Ruby => Some(Interpreter::Ruby),
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: GraphOfArguments) -> anyhow::Result<ExitCode> {
    if let Some(interpreter) = arguments.heap.interpreter() {
        return run_of_objects(interpreter, arguments);
    }
    let GraphOfArguments { core, executable, sysroot, output, contents: asked, force, quiet, format, .. } =
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
        tell_of_objects(&request);
    }
    Ok(ExitCode::SUCCESS)
}

/// Says that the process ran an interpreter whose objects can be read.
fn tell_of_objects(request: &CoreRequest) {
    for (interpreter, name) in [(Interpreter::Python, "CPython"), (Interpreter::Ruby, "Ruby")] {
        let CoreRequest { core, executable, sysroot, .. } = request.clone();
        let contents = heapr_managed::Contents::Names;
        let asked = ManagedCoreRequest { interpreter, core, executable, sysroot, contents };
        if let Some(version) = managed_runtime_of_core(&asked) {
            say!("  it ran {name} {version}: --heap {} writes its objects", interpreter.language());
        }
    }
}

fn run_of_objects(interpreter: Interpreter, arguments: GraphOfArguments) -> anyhow::Result<ExitCode> {
    let GraphOfArguments { core, executable, sysroot, output, contents: asked, force, quiet, format, .. } =
        arguments;
    let contents = match asked {
        Some(Contents::Strings) => heapr_managed::Contents::Strings,
        None => heapr_managed::Contents::Names,
    };
    let request = ManagedCoreRequest { interpreter, core, executable, sysroot, contents };
    let output =
        CoreOutput { path: output, overwrites: force, is_json: format == Format::Json, is_quiet: quiet };
    take_of_core(&request, output)
}
