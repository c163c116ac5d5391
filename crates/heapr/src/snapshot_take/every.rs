//! `heapr snapshot every`: snapshots at intervals, or when the heap exceeds a size.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use heapr_inspector::Process;

use super::capture::CaptureArguments;
use super::file_name::{Destination, FileCount};
use super::hold::Held;
use super::{interrupt, javascript, saved_scripts};

/// Options of `heapr snapshot every` for any process.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct EveryQuestion {
    /// Seconds (or `5m`, `1h`) between two snapshots, or two readings of the heap's size. Then the
    /// processes, by number or by the name of their program. With --off only processes; without
    /// them all
    #[arg(value_name = "SECONDS PID|NAME…")]
    pub(crate) words: Vec<String>,
    /// And the processes that these have started; of JavaScript those alone where a shell, an init
    /// or a package manager is named
    #[arg(long)]
    pub(crate) tree: bool,
    /// Write snapshots of JavaScript into this directory, and native heaps of processes without a
    /// session into this file [default: heapr.PID.heapr, then heapr.PID.2.heapr and so on]
    #[arg(short, long, value_name = "DIRECTORY|FILE", value_parser = crate::output::file_path())]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(short = 'f', long)]
    pub(crate) force: bool,
}

impl EveryQuestion {
    /// Returns the interval, and the processes as they were named.
    pub(crate) fn interval_and_names(&self) -> anyhow::Result<(Duration, &[String])> {
        let Some((interval, names)) = self.words.split_first() else {
            bail!("no interval given: heapr snapshot every SECONDS PID…")
        };
        ensure!(!names.is_empty(), "no process given: heapr snapshot every {interval} PID…");
        Ok((parse_interval(interval)?, names))
    }
}

/// Options for snapshots of JavaScript only.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct EveryOptions {
    /// Take one only when the heap in use has passed this size, and again when it has been below it
    #[arg(long, value_name = "SIZE", value_parser = heapr_filters::quantity::parse_bytes)]
    at_heap: Option<u64>,
    /// Stop after so many snapshots of each process
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: Option<u32>,
    /// Keep the last so many of each process, and delete the ones before that this run has taken
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: Option<u32>,
    /// Close the port between two snapshots; they cannot be compared object by object then
    #[arg(long)]
    close_between: bool,
    #[command(flatten)]
    capture: CaptureArguments,
}

impl EveryOptions {
    /// Whether only errors are printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.capture.open().is_quiet()
    }
}

/// Parses an interval of at least a second.
fn parse_interval(text: &str) -> anyhow::Result<Duration> {
    let interval = heapr_filters::quantity::parse_seconds(text)?;
    ensure!(interval >= Duration::from_secs(1), "an interval is at least one second");
    Ok(interval)
}

/// State of one process.
struct Watched {
    held: Held,
    rounds: u32,
    files: VecDeque<Vec<PathBuf>>,
    is_above: bool,
    has_ended: bool,
}

/// Runs the command.
pub(crate) fn every(asked: &EveryQuestion, arguments: &EveryOptions) -> anyhow::Result<ExitCode> {
    let (period, names) = asked.interval_and_names()?;
    let is_cancelled = interrupt::watch()?;
    let destination = Destination::new(asked.output.as_deref(), false, FileCount::Several)?;
    let pids = javascript::named(names, asked.tree)?;
    let keeps_session = !arguments.close_between && pids.len() == 1;
    let watch = |&pid: &u32| Watched {
        held: Held::new(pid, keeps_session),
        rounds: 0,
        files: VecDeque::new(),
        is_above: false,
        has_ended: false,
    };
    let mut all: Vec<Watched> = pids.iter().map(watch).collect();
    let mut next = Instant::now();
    let mut has_failed = false;
    while !is_cancelled.load(Ordering::Relaxed) && all.iter().any(|watched| !watched.has_ended) {
        for watched in all.iter_mut().filter(|watched| !watched.has_ended) {
            if let Err(error) = look(watched, arguments, &destination, &is_cancelled) {
                let is_gone = Process::examine(watched.held.pid).is_err();
                if !is_cancelled.load(Ordering::Relaxed) {
                    tell!("heapr: {error:#}");
                    has_failed = true;
                }
                let _ = watched.held.close();
                // The first round shows whether snapshots work at all; later ones may fail by
                // chance.
                watched.has_ended |= is_gone || watched.rounds == 0;
            }
            if arguments.count.is_some_and(|count| watched.rounds >= count) {
                watched.has_ended = true;
            }
            if watched.has_ended {
                watched.held.close()?;
            }
        }
        next += period;
        // A snapshot that took longer than the period delays the next one, so that they never
        // follow directly.
        next = next.max(Instant::now() + period / 2);
        sleep_until(next, &is_cancelled, &mut all);
    }
    for watched in &mut all {
        watched.held.close()?;
    }
    if has_failed && all.iter().all(|watched| watched.rounds == 0) {
        bail!("no snapshot was taken");
    }
    Ok(ExitCode::SUCCESS)
}

fn look(
    watched: &mut Watched,
    arguments: &EveryOptions,
    destination: &Destination,
    is_cancelled: &AtomicBool,
) -> anyhow::Result<()> {
    if let Some(threshold_bytes) = arguments.at_heap {
        let usage =
            watched.held.inspector(&arguments.capture, is_cancelled)?.heap_usage(None, is_cancelled)?;
        let was_above = std::mem::replace(&mut watched.is_above, usage.used_bytes >= threshold_bytes);
        if was_above || !watched.is_above {
            return watched.held.rest();
        }
    }
    let captured = watched.held.capture(&arguments.capture, destination, is_cancelled)?;
    watched.held.rest()?;
    watched.rounds += 1;
    for captured in &captured {
        say!("{}", captured.path.display());
    }
    watched.files.push_back(captured.into_iter().map(|captured| captured.path).collect());
    while arguments.keep.is_some_and(|keep| watched.files.len() > keep as usize) {
        for path in watched.files.pop_front().into_iter().flatten() {
            saved_scripts::remove(&path);
            if let Err(error) = std::fs::remove_file(&path) {
                tell!("heapr: cannot delete {}: {error}", path.display());
            }
        }
    }
    Ok(())
}

/// Sleeps in short pieces, so that Ctrl-C is noticed and a process that wants to end is released at
/// once.
fn sleep_until(time: Instant, is_cancelled: &AtomicBool, all: &mut [Watched]) {
    const PIECE: Duration = Duration::from_millis(100);
    while Instant::now() < time && !is_cancelled.load(Ordering::Relaxed) {
        for watched in all.iter_mut().filter(|watched| !watched.has_ended) {
            if watched.held.listen(Instant::now() + PIECE / 10, is_cancelled) {
                watched.has_ended = true;
                // The process is ending; an error of closing does not matter.
                let _ = watched.held.close();
            }
        }
        if all.iter().all(|watched| watched.has_ended) {
            return;
        }
        std::thread::sleep(PIECE.min(time.saturating_duration_since(Instant::now())));
    }
}
