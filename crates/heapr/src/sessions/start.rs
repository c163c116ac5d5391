//! `heapr start`: starts a session whose recorder runs in the background.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;
use heapr_session::{
    Failure, FailureKind, FlagKind, FlaggedTargets, Flags, LoggingMode, ProgramCommand, SessionName,
    SessionProperties, StartRequest,
};

use super::recorder_process::{Beginning, SUBCOMMAND};
use crate::output::{DefaultPath, already_exists};
use crate::processes;
use crate::run::program::{self, Traceability};
use crate::run::record_arguments::RecordArguments;
use crate::run::snapshot_rules::SnapshotRuleArguments;

/// Arguments of `heapr start`.
#[derive(Debug, clap::Args)]
pub(crate) struct StartArguments {
    /// The session's name: letters, digits and . _ - + @
    #[arg(default_value = SessionName::DEFAULT)]
    name: String,
    /// Processes to trace, by number or by the name of their program
    #[arg(short, long = "pid", visible_alias = "pids", value_name = "PID|NAME", value_delimiter = ',')]
    pids: Vec<String>,
    /// The processes that these have started already, too (those that they start from now on are
    /// traced anyhow)
    #[arg(long, requires = "pids")]
    tree: bool,
    /// Trace flagged programs when they start (see `heapr config`)
    #[arg(long)]
    flagged: bool,
    /// Flagged programs that run already, too
    #[arg(long, requires = "flagged")]
    running: bool,
    /// Also attach to processes whose seccomp filters this user cannot read. Use it only if these
    /// filters answer with errors, and do not end the process
    #[arg(long)]
    despite_seccomp: bool,
    /// The trace file [default: heapr.NAME.PID.heapr, PID being the recorder's]
    #[arg(short, long, value_name = "FILE", value_parser = crate::output::file_path())]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(short = 'f', long)]
    force: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    record: RecordArguments,
    #[command(flatten)]
    snapshots: SnapshotRuleArguments,
    /// A program to start with the session, and its arguments; its standard input is empty
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

pub(super) fn run(arguments: StartArguments) -> anyhow::Result<ExitCode> {
    SessionName::new(&arguments.name)?;
    if !arguments.pids.is_empty()
        && let Ok(pid) = arguments.name.parse::<u32>()
        && heapr_proc::is_alive(pid)
    {
        let pids = arguments.pids.join(",");
        anyhow::bail!("{pid} would be the session's name; several processes: --pid {pids},{pid}");
    }
    anyhow::ensure!(
        arguments.flagged || !arguments.pids.is_empty() || !arguments.program.is_empty(),
        "nothing to trace: give --pid PID or NAME, a program behind --, or --flagged"
    );
    let pids = processes::named(&arguments.pids, arguments.tree)?;
    let here = std::env::current_dir().context("cannot tell the working directory")?;
    let output = arguments.output.clone().unwrap_or_else(|| {
        let default = DefaultPath::of(&default_output(&arguments));
        default.tell();
        default.path
    });
    // The recorder leaves the working directory, so its path must be absolute.
    let output = here.join(output);
    let mut properties = SessionProperties::new(output.clone());
    arguments.record.apply(&mut properties)?;
    properties.name.clone_from(&arguments.name);
    properties.overwrite = arguments.force;
    properties.graph_at_exit = arguments.snapshots.graph_at_exit;
    properties.graph_contents = arguments.snapshots.graph_contents();
    properties.despite_seccomp = arguments.despite_seccomp;
    properties.command_line =
        arguments.program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let program = match arguments.program.split_first() {
        None => None,
        Some((name, _)) => Some(find_program(name, &here, &arguments.program)?),
    };
    let snapshot_rules = arguments.snapshots.rules();
    let flagged = arguments.flagged.then_some(FlaggedTargets { takes_running: arguments.running });
    let with_children = arguments.tree;
    let request = StartRequest { properties, program, pids, with_children, snapshot_rules, flagged };
    let (beginning, _) = begin(&request, Lifetime::Own)?;
    if !arguments.quiet {
        tell!(
            "heapr: session {} records into {} (recorder {}); end it with `heapr stop {}`",
            arguments.name,
            output.display(),
            beginning.recorder_pid,
            arguments.name
        );
        for remark in beginning.remarks {
            tell!("heapr: {remark}");
        }
        if request.flagged.is_some() {
            tell_if_none_is_flagged(&request);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the default name of the trace. A session with several files has one name, also after a
/// restart.
fn default_output(arguments: &StartArguments) -> String {
    if arguments.record.has_files_in_turn() {
        return format!("heapr.{}.heapr", arguments.name);
    }
    format!("heapr.{}.{}.heapr", arguments.name, std::process::id())
}

fn find_program(name: &OsString, here: &Path, arguments: &[OsString]) -> anyhow::Result<ProgramCommand> {
    let found = program::find(name).map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
    let path = found.path.display();
    match found.traceability {
        Traceability::Yes => {}
        Traceability::No(reason) => anyhow::bail!("{path} cannot be traced: {reason}"),
        Traceability::Held | Traceability::HeldAlone => anyhow::bail!(
            "{path} is statically linked, or loads no library: heapr run records it, and heapr start --pid once it runs"
        ),
    }
    Ok(ProgramCommand { path: here.join(found.path).into_os_string(), arguments: arguments.to_vec() })
}

/// Lifetime of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// Until it is stopped.
    Own,
    /// Until the starter closes its end of the socket, at the latest with its own end.
    OfStarter,
}

/// Starts the recorder's process, sends it the request, and waits until it has begun. Returns the
/// starter's end of the socket, too.
pub(super) fn begin(request: &StartRequest, lifetime: Lifetime) -> anyhow::Result<(Beginning, UnixStream)> {
    let (ours, theirs) = UnixStream::pair().context("cannot make a pair of sockets")?;
    // The running program itself, even if its file was replaced since.
    let mut recorder = Command::new("/proc/self/exe");
    recorder.arg(SUBCOMMAND).arg(&request.properties.name).stdin(Stdio::from(OwnedFd::from(theirs)));
    if lifetime == Lifetime::OfStarter {
        // The recorder must not write on the screen of its starter.
        recorder.arg("--ends-with-starter").stdout(Stdio::null()).stderr(Stdio::null());
    }
    // The recorder raises its own limits, and gives the original ones to its program.
    heapr_inject::with_given_limits(&mut recorder);
    let mut child = recorder.spawn().context("cannot start the recorder")?;
    drop(recorder);
    let mut line = serde_json::to_vec(request).context("cannot pass the properties on")?;
    line.push(b'\n');
    (&ours).write_all(&line).context("cannot pass the properties on to the recorder")?;
    let mut answer = String::new();
    let read = BufReader::new(&ours).read_line(&mut answer);
    let outcome: Result<Beginning, Failure> = match read {
        Ok(0) | Err(_) => {
            let status = child.wait().map(|status| status.to_string()).unwrap_or_default();
            anyhow::bail!("the recorder ended before it had begun ({status})")
        }
        Ok(_) => serde_json::from_str(&answer).context("the recorder's answer makes no sense")?,
    };
    let beginning = outcome.map_err(|failure| advice(failure, &request.properties))?;
    Ok((beginning, ours))
}

/// Starts a session that runs on by itself. Returns the recorder's process id.
pub(crate) fn start_background(request: &StartRequest) -> anyhow::Result<u32> {
    let (beginning, _) = begin(request, Lifetime::Own)?;
    Ok(beginning.recorder_pid)
}

/// Says so if no program is flagged for this session, and whether flags of the other kind exist.
fn tell_if_none_is_flagged(request: &StartRequest) {
    let (kind, other, word) = match request.properties.mode {
        LoggingMode::Snapshot => (FlagKind::Snapshot, FlagKind::Heap, "snapshot"),
        _ => (FlagKind::Heap, FlagKind::Snapshot, "heap"),
    };
    let Ok(flags) = Flags::load_all() else { return };
    let has = |kind: FlagKind| flags.in_force().any(|flag| flag.kind == kind);
    if !has(kind) {
        let others = match (has(other), other) {
            (false, _) => "",
            (true, FlagKind::Heap) => "; flags for the heap are for sessions without --mode snapshot",
            (true, FlagKind::Snapshot) => "; flags for snapshots are for sessions with --mode snapshot",
        };
        tell!("heapr: no program is flagged yet: `heapr config enable {word} --name EXE` does it{others}");
    }
}

/// Converts a failure into an error, with advice if the output file is the cause.
pub(crate) fn advice(failure: Failure, properties: &SessionProperties) -> anyhow::Error {
    let output = Path::new(&properties.output);
    if failure.kind == FailureKind::Output && output.symlink_metadata().is_ok() {
        if output.is_dir() && !output.is_symlink() {
            return anyhow::anyhow!("{} is a directory: name a file with -o", output.display());
        }
        if output.is_symlink() {
            return anyhow::anyhow!("{} is a symbolic link, and heapr writes through none", output.display());
        }
        if !properties.overwrite {
            return already_exists(output);
        }
    }
    failure.into()
}
