//! `heapr snapshot take`: captures a snapshot of each process that is named.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use heapr_inspector::{Process, SnapshotSignal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::capture::CaptureArguments;
use super::file_name::{Destination, FileCount, latest_of};
use super::hold::Held;
use super::preflight::Consent;
use super::{interrupt, javascript, ready_processes, signal_snapshot};
use crate::containers;

/// Options of `heapr snapshot take` for any process.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct TakeQuestion {
    /// Processes, by number or by the name of their program; or all that a session records, by its
    /// name
    #[arg(value_name = "PID|NAME", required_unless_present = "container")]
    pub(crate) pids: Vec<String>,
    /// All processes of a container of this machine, by its id or the name of its pod; of
    /// JavaScript those that run it. The same as the word container:ID in place of a process
    #[arg(long, value_name = "ID|POD")]
    container: Vec<String>,
    /// And the processes that these have started; of JavaScript those alone where a shell, an init
    /// or a package manager is named
    #[arg(long)]
    pub(crate) tree: bool,
    /// Write to this file. Snapshots of JavaScript and of Python may go into this directory, under
    /// their default names. [default: of JavaScript Heap.DATE.TIME.PID.THREAD.NUMBER.heapsnapshot;
    /// of Python heapr.PID.heapsnapshot; for native heaps without a session heapr.PID.heapr, then
    /// heapr.PID.2.heapr]
    #[arg(short, long, value_name = "FILE|DIRECTORY", value_parser = crate::output::file_path())]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the file
    #[arg(short = 'f', long)]
    pub(crate) force: bool,
    /// Format of what is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Options for snapshots of JavaScript only.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct TakeOptions {
    /// Have the process write it on this signal (SIGUSR2 …), as it was started with
    /// --heapsnapshot-signal, and move the file
    #[arg(long, value_name = "SIGNAL", value_parser = parse_signal, conflicts_with_all = ["workers", "gc", "numeric_values", "expose_internals", "redact"])]
    signal: Option<SnapshotSignal>,
    /// Take another one each time Enter is pressed; only snapshots of one run can be compared
    /// object by object
    #[arg(long, conflicts_with = "signal")]
    again: bool,
    #[command(flatten)]
    capture: CaptureArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// The names of the files
    Text,
    /// Names and all that was measured, for programs
    Json,
}

impl TakeQuestion {
    /// Adds the containers to the processes.
    pub(crate) fn with_containers(mut self) -> Self {
        let words = self.container.drain(..).map(|name| format!("{}{name}", containers::PREFIX));
        self.pids.extend(words);
        self
    }
}

impl TakeOptions {
    /// Whether only errors are printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.capture.open().is_quiet()
    }
}

fn parse_signal(name: &str) -> Result<SnapshotSignal, String> {
    SnapshotSignal::parse(name).ok_or_else(|| "Node takes SIGUSR1 or SIGUSR2".to_owned())
}

/// Runs the command.
pub(crate) fn take(asked: &TakeQuestion, options: &TakeOptions) -> anyhow::Result<ExitCode> {
    let is_cancelled = interrupt::watch()?;
    let pids = javascript::named(&asked.pids, asked.tree)?;
    let is_one = pids.len() == 1 && !options.capture.has_workers() && !options.again;
    let count = if is_one { FileCount::One } else { FileCount::Several };
    let destination = Destination::new(asked.output.as_deref(), asked.force, count)?;
    let mut written = Vec::new();
    let mut status = ExitCode::SUCCESS;
    for pid in pids {
        if is_cancelled.load(Ordering::Relaxed) {
            break;
        }
        let children = if asked.tree { None } else { javascript::started_by(pid) };
        if let Some(children) = &children
            && Process::examine(pid).is_ok_and(|process| !process.runs_javascript())
        {
            tell!("heapr: process {pid} runs no JavaScript, but {children}");
            status = ExitCode::from(2);
            continue;
        }
        let outcome = if options.signal.is_some() || is_prepared(pid, options) {
            by_signal(pid, (asked, options), &destination, &is_cancelled, &mut written)
        } else {
            by_inspector(pid, (asked, options), &destination, &is_cancelled, &mut written)
        };
        if let Err(error) = outcome {
            // The other processes are not affected.
            tell!("heapr: {error:#}");
            status = ExitCode::from(2);
        } else if let Some(children) = children.filter(|_| !options.capture.open().is_quiet()) {
            tell!("heapr: process {pid} {children}");
        }
    }
    if asked.format == Format::Json {
        crate::plain_text::say_json(&json!({ "schema": "heapr.snapshot.take/1", "snapshots": written }));
    }
    Ok(status)
}

/// Whether the process writes snapshots by itself, and the options allow such a one.
fn is_prepared(pid: u32, options: &TakeOptions) -> bool {
    let needs_inspector = options.again || options.capture.needs_inspector();
    !needs_inspector && Process::examine(pid).is_ok_and(|process| ready_processes::find(&process).is_some())
}

fn by_inspector(
    pid: u32,
    (asked, options): (&TakeQuestion, &TakeOptions),
    destination: &Destination,
    is_cancelled: &AtomicBool,
    written: &mut Vec<Value>,
) -> anyhow::Result<()> {
    let mut held = Held::new(pid, true);
    let mut paths = Vec::new();
    let outcome = (|| {
        loop {
            for captured in held.capture(&options.capture, destination, is_cancelled)? {
                if asked.format == Format::Text {
                    say!("{}", captured.path.display());
                }
                written.push(captured.json());
                paths.push(captured.path);
            }
            if !options.again || !wait_for_enter(&mut held, is_cancelled)? {
                return Ok(());
            }
        }
    })();
    if let Some(earlier) = latest_of(pid, destination.directory(), &paths)
        .filter(|_| outcome.is_ok() && !options.capture.open().is_quiet())
    {
        tell!(
            "heapr: objects have other ids now than in {}, because V8 numbers them anew in each inspector session: snapshots \
             to be compared object by object are taken in one run, with --again or by `heapr snapshot every`, or after `heapr node prepare {pid}`",
            earlier.display()
        );
    }
    outcome.and(held.close())
}

fn by_signal(
    pid: u32,
    (asked, options): (&TakeQuestion, &TakeOptions),
    destination: &Destination,
    is_cancelled: &AtomicBool,
    written: &mut Vec<Value>,
) -> anyhow::Result<()> {
    let open = options.capture.open();
    let consent = Consent { may_risk: options.capture.may_risk(), is_quiet: open.is_quiet() };
    let wait = open.options().wait;
    let path = signal_snapshot::take(pid, options.signal, consent, wait, destination, is_cancelled)?;
    if asked.format == Format::Text {
        say!("{}", path.display());
    }
    let file_bytes = path.metadata()?.len();
    written
        .push(json!({ "file": path.to_string_lossy(), "pid": pid, "thread": 0, "file_bytes": file_bytes }));
    Ok(())
}

/// Waits for a line on standard input. Returns `false` if the input or the process ended, or the
/// user pressed Ctrl-C.
fn wait_for_enter(held: &mut Held, is_cancelled: &AtomicBool) -> anyhow::Result<bool> {
    const LOOK: Duration = Duration::from_millis(10);
    const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    tell!("heapr: Enter takes another one, Ctrl-C ends");
    let stdin = std::io::stdin();
    while !is_cancelled.load(Ordering::Relaxed) {
        if held.listen(Instant::now() + LOOK, is_cancelled) {
            tell!("heapr: process {} ends", held.pid);
            return Ok(false);
        }
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut waiting, Some(&TICK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => {
                let mut line = String::new();
                return Ok(stdin.read_line(&mut line).context("cannot read from the terminal")? > 0);
            }
            Err(error) => return Err(error).context("cannot wait for the terminal"),
        }
    }
    Ok(false)
}
