//! `heapr snapshot take` of runtimes that stop the process themselves, and tell its heap.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use heapr_managed::{Attached, Contents, DotnetProcess, DumpedHeap};
use heapr_table::quantity::{bytes, duration, plural};
use heapr_v8::{NodeKind, Snapshot};
use serde_json::{Value, json};

use super::take::{HeapChoice, output};
use crate::output::OutputFile;
use crate::processes;
use crate::snapshot_take::{Format, TakeQuestion};

/// Options of a snapshot by a runtime that stops the process.
pub(crate) struct StoppingOptions {
    /// Longest time for which the process may stand still.
    pub(crate) max_pause: Duration,
    pub(crate) contents: Contents,
    pub(crate) is_quiet: bool,
}

/// Heap that a runtime told.
pub(super) struct ToldHeap {
    pub(super) heap: DumpedHeap,
    /// Time for which the process stood still, at most, if that is known.
    pub(super) pause: Option<Duration>,
    /// Bytes of the dump or the events.
    pub(super) dump_bytes: u64,
}

/// A runtime that stops its process to tell its heap.
pub(super) trait StoppingRuntime: Sized {
    /// Name of the heap on the command line.
    const HEAP: &'static str;
    /// Words for the part that stops the process.
    const STOPPER: &'static str;
    /// Time for which the process stands still: at least, and for each GiB of its heap.
    const PAUSE_AT_LEAST: Duration;
    const PAUSE_PER_GIB: Duration;

    /// Finds the runtime of a process, and asks nothing of it that stops it.
    fn attach(pid: u32, contents: Contents) -> anyhow::Result<Self>;

    /// Bytes of its heap that are in use, if it says that.
    fn used_bytes(&self) -> Option<u64>;

    /// Has it tell its heap. `used_bytes` is what the heap has in use, at most.
    fn tell(&self, used_bytes: u64, options: &StoppingOptions) -> anyhow::Result<ToldHeap>;

    /// Advice for a runtime that cannot be asked.
    fn advice(error: &anyhow::Error) -> &'static str;

    /// Sentence on what was told: its size is known.
    fn told(dump_bytes: &str) -> String;
}

/// The command for one runtime.
type Take = fn(&TakeQuestion, &StoppingOptions) -> anyhow::Result<ExitCode>;

/// Name of a runtime that stops its process, and the command; `None` for other heaps.
pub(crate) fn of_stopping(heap: HeapChoice) -> Option<(&'static str, Take)> {
    match heap {
        HeapChoice::Java => Some((Attached::HEAP, take::<Attached>)),
        HeapChoice::Dotnet => Some((DotnetProcess::HEAP, take::<DotnetProcess>)),
        HeapChoice::Python | HeapChoice::Ruby | HeapChoice::Javascript | HeapChoice::Native => None,
    }
}

/// Runs the command.
fn take<R: StoppingRuntime>(asked: &TakeQuestion, options: &StoppingOptions) -> anyhow::Result<ExitCode> {
    let pids = processes::named_with_children(&asked.pids, asked.tree)?;
    let named = asked.output.as_deref().filter(|path| !path.is_dir());
    if named.and_then(Path::extension).is_some_and(|end| end == "heapr") {
        bail!(
            "-o names a .heapr, and objects of {} are written as .heapsnapshot: --heap native writes a .heapr",
            R::HEAP
        );
    }
    if named.is_some() && pids.len() > 1 {
        bail!("-o names one file, and these are {} processes: each has a file of its own", pids.len());
    }
    let mut status = ExitCode::SUCCESS;
    let mut taken = Vec::new();
    for pid in pids {
        match take_one::<R>(pid, asked, options) {
            Ok(facts) => {
                if asked.format == Format::Text && !options.is_quiet {
                    facts.print::<R>();
                }
                taken.push(facts.json::<R>(pid, options.contents));
            }
            Err(error) => {
                // The other processes are not affected.
                tell!("heapr: process {pid}: {error:#}{}", R::advice(&error));
                status = ExitCode::from(2);
            }
        }
    }
    if asked.format == Format::Json {
        crate::plain_text::say_json(&json!({ "schema": "heapr.snapshot.take/1", "snapshots": taken }));
    }
    Ok(status)
}

/// Amounts of a snapshot.
#[derive(Debug, Default)]
struct Amounts {
    object_count: u32,
    object_bytes: u64,
    /// Memory that is no part of the runtime's heap.
    native_bytes: u64,
}

impl Amounts {
    fn of(snapshot: &Snapshot) -> Self {
        let mut amounts = Self::default();
        for node in 0..snapshot.node_count() {
            let own_bytes = snapshot.self_bytes(node);
            // Rows of roots have no bytes.
            if matches!(snapshot.kind(node), NodeKind::NATIVE | NodeKind::SYNTHETIC) {
                amounts.native_bytes = amounts.native_bytes.saturating_add(own_bytes);
            } else {
                amounts.object_count += 1;
                amounts.object_bytes = amounts.object_bytes.saturating_add(own_bytes);
            }
        }
        amounts
    }
}

/// Facts of a written snapshot.
struct Facts {
    path: PathBuf,
    runtime: String,
    amounts: Amounts,
    reference_count: u32,
    dump_bytes: u64,
    pause: Option<Duration>,
    taken_in: Duration,
    notes: Vec<String>,
}

fn take_one<R: StoppingRuntime>(
    pid: u32,
    asked: &TakeQuestion,
    options: &StoppingOptions,
) -> anyhow::Result<Facts> {
    let path = output(asked.output.as_deref(), pid, asked.force);
    if !asked.force && path.symlink_metadata().is_ok() {
        return Err(crate::output::already_exists(&path));
    }
    let file = OutputFile::create_unnamed(&path, asked.force)?;
    let begin = Instant::now();
    let runtime = R::attach(pid, options.contents)?;
    let used_bytes = told_before(pid, &runtime, asked, options)?;
    let ToldHeap { heap, pause, dump_bytes } = runtime.tell(used_bytes, options)?;
    if !options.is_quiet {
        for note in &heap.notes {
            tell!("heapr: process {pid}: {note}");
        }
    }
    let snapshot = heap.snapshot;
    let cannot = || format!("cannot write {}", path.display());
    let mut out = BufWriter::with_capacity(1 << 20, file);
    snapshot.write(&mut out).with_context(cannot)?;
    out.flush().with_context(cannot)?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(cannot)?.keep()?;
    Ok(Facts {
        path,
        runtime: snapshot.meta().dialect.as_ref().map(|it| it.runtime.clone()).unwrap_or_default(),
        amounts: Amounts::of(&snapshot),
        reference_count: snapshot.edge_count(),
        dump_bytes,
        pause,
        taken_in: begin.elapsed(),
        notes: heap.notes,
    })
}

/// Says how long the process will stand still. Refuses if that is more than allowed. Returns how
/// many bytes of its heap are in use, at most.
fn told_before<R: StoppingRuntime>(
    pid: u32,
    runtime: &R,
    asked: &TakeQuestion,
    options: &StoppingOptions,
) -> anyhow::Result<u64> {
    let said_bytes = runtime.used_bytes();
    // The heap is a part of what is resident, where the runtime does not say how large it is.
    let Some(used_bytes) = said_bytes.or_else(|| heapr_proc::resident_bytes(pid)) else {
        bail!("its {} does not say how large its heap is, so that --max-pause cannot be kept", R::STOPPER)
    };
    let expected = R::PAUSE_AT_LEAST + R::PAUSE_PER_GIB.mul_f64(used_bytes as f64 / f64::from(1 << 30));
    let told = duration(expected.as_nanos() as u64);
    ensure!(
        expected <= options.max_pause,
        "its {} would stand still for up to about {told}, and may for {} ms: it did not stop; \
         --max-pause allows more",
        R::STOPPER,
        options.max_pause.as_millis()
    );
    if !options.is_quiet && asked.format == Format::Text {
        let what = if said_bytes.is_some() { "of its heap" } else { "of memory" };
        tell!(
            "heapr: process {pid} uses {} {what}: its {} collects garbage, and stands still for up \
             to about {told} while it tells its objects",
            bytes(used_bytes),
            R::STOPPER
        );
    }
    Ok(used_bytes)
}

impl Facts {
    fn print<R: StoppingRuntime>(&self) {
        say!(
            "{}: {}: {} of {}, {}, in {}",
            self.path.display(),
            self.runtime,
            bytes(self.amounts.object_bytes),
            plural(self.amounts.object_count.into(), "object"),
            plural(self.reference_count.into(), "reference"),
            duration(self.taken_in.as_nanos() as u64),
        );
        if self.amounts.native_bytes > 0 {
            say!(
                "  and {} of native memory and mapped files of direct buffers",
                bytes(self.amounts.native_bytes)
            );
        }
        let pause = self.pause.map_or_else(
            || "a time that is not known".to_owned(),
            |pause| format!("up to {}", duration(pause.as_nanos() as u64)),
        );
        say!("  its {} stood still for {pause}, and {}", R::STOPPER, R::told(&bytes(self.dump_bytes)));
    }

    fn json<R: StoppingRuntime>(&self, pid: u32, contents: Contents) -> Value {
        json!({
            "file": self.path.to_string_lossy(),
            "pids": [pid],
            "heap": R::HEAP,
            "runtime": self.runtime,
            "object_count": self.amounts.object_count,
            "object_bytes": self.amounts.object_bytes,
            "native_bytes": self.amounts.native_bytes,
            "reference_count": self.reference_count,
            "garbage_count": Value::Null,
            "pause_ns": self.pause.map(|pause| pause.as_nanos() as u64),
            "dump_bytes": self.dump_bytes,
            "taken_ns": self.taken_in.as_nanos() as u64,
            "contents": if contents == Contents::Strings { "strings" } else { "names" },
            "notes": self.notes,
        })
    }
}
