//! One round of snapshots through an open inspector: the main thread, and the workers if requested.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context;
use heapr_inspector::{
    Closing, Estimate, HeapFacts, HeapUsage, Inspector, OpenOptions, Process, Runtime, SnapshotOptions,
    SnapshotProgress, TakenSnapshot, Worker, heap_shape, resident_bytes,
};
use serde_json::json;

use super::file_name::Destination;
use super::preflight::Consent;
use super::redaction::{Redaction, redacted};
use super::{preflight, saved_scripts};
use crate::output::OutputFile;
use crate::report::progress_bar::ProgressBar;
use heapr_table::quantity;

/// Options for taking snapshots.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CaptureArguments {
    /// Collect garbage first
    #[arg(long)]
    gc: bool,
    /// Keep the values of numbers (larger by a sixth)
    #[arg(long)]
    numeric_values: bool,
    /// Show V8's own objects as they are, as DevTools does; do not compare with snapshots without
    /// it
    #[arg(long)]
    expose_internals: bool,
    /// Replace texts on their way to the file, with others of the same lengths: they never reach
    /// the disk. With =names, the names that the program gives, too
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "texts")]
    redact: Option<Redaction>,
    /// Do not save the scripts that no file here has as they ran. They are saved beside the
    /// snapshot (FILE.scripts), with their source maps
    #[arg(long)]
    no_scripts: bool,
    /// Take one of each worker thread, too
    #[arg(long)]
    workers: bool,
    /// Take it even if the process would likely be killed for want of memory
    #[arg(long)]
    at_risk: bool,
    #[command(flatten)]
    open: OpenArguments,
}

/// Connection to the inspector.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OpenArguments {
    /// Do not send SIGUSR1: use the inspector only if it is open
    #[arg(long)]
    no_signal: bool,
    /// Target to inspect, if there are several: its id, or a part of its URL or title
    #[arg(long, value_name = "TEXT")]
    target: Option<String>,
    /// Wait so long for the port and for answers
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = heapr_filters::quantity::parse_seconds)]
    wait: Duration,
    /// Print nothing but errors
    #[arg(short, long, help_heading = "Options")]
    quiet: bool,
}

impl OpenArguments {
    pub(crate) fn options(&self) -> OpenOptions {
        OpenOptions {
            may_signal: !self.no_signal,
            wait: self.wait.max(Duration::from_secs(1)),
            target: self.target.clone(),
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }
}

impl CaptureArguments {
    pub(crate) fn open(&self) -> &OpenArguments {
        &self.open
    }

    pub(crate) fn has_workers(&self) -> bool {
        self.workers
    }

    /// Whether an option requires the inspector, because a program does not offer it by itself.
    pub(crate) fn needs_inspector(&self) -> bool {
        self.gc
            || self.numeric_values
            || self.expose_internals
            || self.workers
            || self.redact.is_some()
            || self.open.target.is_some()
    }

    pub(crate) fn may_risk(&self) -> bool {
        self.at_risk
    }

    /// Returns the facts on a heap before a snapshot. All isolates of a process share its memory.
    pub(crate) fn facts(&self, inspector: &Inspector, usage: HeapUsage) -> HeapFacts {
        HeapFacts {
            usage,
            shape: heap_shape(inspector.process().pid),
            has_numeric_values: self.numeric_values,
            node_major: inspector.node_major(),
        }
    }

    pub(crate) fn snapshot_options(&self) -> SnapshotOptions {
        SnapshotOptions {
            collects_garbage_first: self.gc,
            has_numeric_values: self.numeric_values,
            exposes_internals: self.expose_internals,
        }
    }
}

/// Snapshot that was written.
#[derive(Debug)]
pub(crate) struct Captured {
    pub(crate) path: PathBuf,
    pid: u32,
    thread_number: u32,
    heap_used_bytes: u64,
    taken: TakenSnapshot,
    extra_bytes: u64,
    estimate: Estimate,
}

impl Captured {
    /// Returns the snapshot for `--format json`.
    pub(crate) fn json(&self) -> serde_json::Value {
        json!({
            "file": self.path.to_string_lossy(),
            "pid": self.pid,
            "thread": self.thread_number,
            "file_bytes": self.taken.bytes,
            "heap_used_bytes": self.heap_used_bytes,
            "pause_us": micros(self.taken.pause),
            "first_byte_us": micros(self.taken.until_first_byte),
            "extra_memory_bytes": self.extra_bytes,
            "estimated_pause_us": micros(self.estimate.pause),
            "estimated_extra_memory_bytes": self.estimate.extra_bytes,
            "estimated_extra_memory_max_bytes": self.estimate.extra_max_bytes,
        })
    }

    fn tell(&self, runtime: Runtime) {
        // The pages of a browser run in processes of their own.
        let memory = match runtime {
            Runtime::Chrome | Runtime::Electron => String::new(),
            _ => format!(", memory grew by {}", quantity::bytes(self.extra_bytes)),
        };
        tell!(
            "heapr: {}: {}, the thread stood still for {}{memory}",
            self.path.display(),
            quantity::bytes(self.taken.bytes),
            preflight::seconds(self.taken.pause),
        );
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Determines the runtime of a process and opens its inspector.
pub(crate) fn open(
    pid: u32,
    arguments: &OpenArguments,
    is_cancelled: &AtomicBool,
) -> anyhow::Result<Inspector> {
    let process = Process::examine(pid)?;
    let inspector = Inspector::open(&process, &arguments.options(), is_cancelled)?;
    if inspector.was_opened_by_us() && !arguments.quiet {
        tell!(
            "heapr: process {pid} has opened {} for us (SIGUSR1); it will be closed again",
            inspector.address()
        );
    }
    Ok(inspector)
}

/// Captures a snapshot of the main thread and, if requested, of each worker.
pub(crate) fn capture(
    inspector: &mut Inspector,
    arguments: &CaptureArguments,
    destination: &Destination,
    is_cancelled: &AtomicBool,
    captured: &mut Vec<Captured>,
) -> anyhow::Result<()> {
    captured.push(capture_one(inspector, None, arguments, destination, is_cancelled)?);
    if arguments.workers {
        for worker in inspector.workers(is_cancelled)? {
            captured.push(capture_one(inspector, Some(&worker), arguments, destination, is_cancelled)?);
        }
    }
    Ok(())
}

fn capture_one(
    inspector: &mut Inspector,
    worker: Option<&Worker>,
    arguments: &CaptureArguments,
    destination: &Destination,
    is_cancelled: &AtomicBool,
) -> anyhow::Result<Captured> {
    let pid = inspector.process().pid;
    let is_quiet = arguments.open.quiet;
    let thread_number = worker.map_or(0, |worker| worker.thread_number);
    let what =
        worker.map_or_else(|| format!("process {pid}"), |worker| format!("process {pid}, {}", worker.title));
    let usage = inspector.heap_usage(worker, is_cancelled)?;
    let facts = arguments.facts(inspector, usage);
    let consent = Consent { may_risk: arguments.at_risk, is_quiet };
    let estimate = preflight::check(pid, &what, facts, &[destination.directory()], consent)?;
    // V8 names and hashes each requested script, and keeps these strings. With scripts requested
    // before the first snapshot, the strings are in all of them, and no snapshot seems to have
    // grown by them. They also are texts of the program, so redaction excludes them.
    let wants_scripts = !arguments.no_scripts && arguments.redact.is_none();
    let scripts = wants_scripts.then(|| saved_scripts::ask(inspector, worker, is_cancelled));
    let (path, may_replace) = destination.path("Heap", pid, thread_number, "heapsnapshot");
    let mut file = OutputFile::create(&path, may_replace)?;
    let mut display = Display::new(pid, estimate.file_bytes);
    let options = arguments.snapshot_options();
    let mut take = |sink: &mut (dyn std::io::Write + Send)| {
        inspector.take_snapshot(worker, options, sink, &mut |progress| display.show(progress), is_cancelled)
    };
    let taken = match arguments.redact {
        None => take(&mut file),
        Some(redaction) => {
            let (taken, bytes) = redacted(redaction, &mut file, take)?;
            taken.map(|taken| TakenSnapshot { bytes, ..taken })
        }
    };
    if inspector.is_sending() {
        drop(display);
        tell!(
            "heapr: process {pid} is still busy with the snapshot that was given up; waiting for its end, since Node may crash where the \
             connection is closed earlier (a second interrupt closes it)"
        );
        return Err(taken.map_or_else(anyhow::Error::from, |_| anyhow::anyhow!("the snapshot was given up")));
    }
    let taken = taken?;
    let extra_bytes = display.peak_bytes.saturating_sub(display.start_bytes);
    drop(display);
    let path = file.keep_as(|| destination.path("Heap", pid, thread_number, "heapsnapshot").0)?;
    if let Some(scripts) = scripts {
        saved_scripts::keep(scripts, &path);
    }
    let captured = Captured {
        path,
        pid,
        thread_number,
        heap_used_bytes: usage.used_bytes,
        taken,
        extra_bytes,
        estimate,
    };
    if !is_quiet {
        captured.tell(inspector.process().runtime);
    }
    Ok(captured)
}

/// Closes what heapr opened; an error says that it is still open.
pub(crate) fn close(inspector: Inspector) -> anyhow::Result<()> {
    let pid = inspector.process().pid;
    match inspector.close() {
        Closing::StillOpen(address) => Err(anyhow::anyhow!(
            "process {pid} still listens on {address}: whoever reaches it there can run code in it"
        ))
        .context("the inspector could not be closed"),
        Closing::Asked(address) => {
            tell!("heapr: process {pid} is still busy, and closes {address} when it is done");
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Progress on the terminal, and the process's memory meanwhile.
struct Display {
    pid: u32,
    file_bytes: u64,
    building: Option<ProgressBar>,
    writing: Option<ProgressBar>,
    looked: Instant,
    start_bytes: u64,
    peak_bytes: u64,
}

/// Time between two samples of the process's memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Display {
    fn new(pid: u32, file_bytes: u64) -> Self {
        let start_bytes = resident_bytes(pid);
        let building = Some(ProgressBar::new("building"));
        Self {
            pid,
            file_bytes,
            building,
            writing: None,
            looked: Instant::now(),
            start_bytes,
            peak_bytes: start_bytes,
        }
    }

    fn show(&mut self, progress: SnapshotProgress) {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            self.peak_bytes = self.peak_bytes.max(resident_bytes(self.pid));
        }
        match progress {
            SnapshotProgress::Building { done, total } => {
                if let Some(bar) = &mut self.building {
                    bar.show(done as usize, total as usize);
                }
            }
            SnapshotProgress::Writing { bytes } => {
                self.building = None;
                // The length of the file is estimated, rather too long than too short.
                let bar = self.writing.get_or_insert_with(|| ProgressBar::new("writing"));
                bar.show(bytes as usize, self.file_bytes.max(bytes) as usize);
            }
        }
    }
}
