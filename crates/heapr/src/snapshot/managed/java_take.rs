//! `heapr snapshot take` of processes that run Java.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use heapr_managed::{AttachError, Attached, Contents, HeapDump, read_hprof};
use heapr_table::quantity::{bytes, duration, plural};
use heapr_v8::{NodeKind, Snapshot};
use serde_json::{Value, json};

use super::take::output;
use crate::output::OutputFile;
use crate::processes;
use crate::snapshot_take::{Format, TakeQuestion};

/// Time for which a virtual machine stands still: at least, and for each GiB of its heap. Measured
/// with JDK 17 on a busy machine.
const PAUSE_AT_LEAST: Duration = Duration::from_millis(100);
const PAUSE_PER_GIB: Duration = Duration::from_secs(9);

/// Options of a snapshot of Java's objects.
pub(crate) struct JavaTakeOptions {
    /// Longest time for which the process may stand still.
    pub(crate) max_pause: Duration,
    pub(crate) contents: Contents,
    pub(crate) is_quiet: bool,
}

/// Runs the command.
pub(crate) fn take_java(asked: &TakeQuestion, options: &JavaTakeOptions) -> anyhow::Result<ExitCode> {
    let pids = processes::named_with_children(&asked.pids, asked.tree)?;
    let named = asked.output.as_deref().filter(|path| !path.is_dir());
    if named.and_then(Path::extension).is_some_and(|end| end == "heapr") {
        bail!(
            "-o names a .heapr, and objects of java are written as .heapsnapshot: --heap native writes a .heapr"
        );
    }
    if named.is_some() && pids.len() > 1 {
        bail!("-o names one file, and these are {} processes: each has a file of its own", pids.len());
    }
    let mut status = ExitCode::SUCCESS;
    let mut taken = Vec::new();
    for pid in pids {
        match take_one(pid, asked, options) {
            Ok(facts) => {
                if asked.format == Format::Text && !options.is_quiet {
                    facts.print();
                }
                taken.push(facts.json(pid, options.contents));
            }
            Err(error) => {
                // The other processes are not affected.
                tell!("heapr: process {pid}: {error:#}{}", advice(&error));
                status = ExitCode::from(2);
            }
        }
    }
    if asked.format == Format::Json {
        crate::plain_text::say_json(&json!({ "schema": "heapr.snapshot.take/1", "snapshots": taken }));
    }
    Ok(status)
}

/// Advice for a virtual machine that cannot be asked.
fn advice(error: &anyhow::Error) -> &'static str {
    match error.downcast_ref::<AttachError>() {
        None | Some(AttachError::NotAllowed { .. }) => "",
        Some(_) => "; --heap native takes its native heap",
    }
}

/// Amounts of a snapshot.
#[derive(Debug, Default)]
struct Amounts {
    object_count: u32,
    object_bytes: u64,
    /// Memory of direct buffers, which is no part of Java's heap.
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
    pause: Duration,
    taken_in: Duration,
    notes: Vec<String>,
}

fn take_one(pid: u32, asked: &TakeQuestion, options: &JavaTakeOptions) -> anyhow::Result<Facts> {
    let path = output(asked.output.as_deref(), pid, asked.force);
    if !asked.force && path.symlink_metadata().is_ok() {
        return Err(crate::output::already_exists(&path));
    }
    let file = OutputFile::create(&path, asked.force)?;
    let begin = Instant::now();
    let attached = Attached::to(pid)?;
    let used_bytes = told_before(pid, &attached, asked, options)?;
    let dump = HeapDump::of(&attached, Some(used_bytes), options.max_pause)?;
    let heap =
        read_hprof(&|offset| dump.open(offset), options.contents).context("its heap dump cannot be read")?;
    if let Some(offset) = heap.cut_at {
        bail!("its virtual machine wrote a heap dump that is cut at offset {offset}: is its disk full?");
    }
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
        dump_bytes: dump.bytes(),
        pause: dump.written_in,
        taken_in: begin.elapsed(),
        notes: heap.notes,
    })
}

/// Says how long the process will stand still. Refuses if that is more than allowed. Returns how
/// many bytes of its heap are in use, at most.
fn told_before(
    pid: u32,
    attached: &Attached,
    asked: &TakeQuestion,
    options: &JavaTakeOptions,
) -> anyhow::Result<u64> {
    let said_bytes = attached.used_bytes();
    // The heap is a part of what is resident. Java 8 does not say how large it is.
    let Some(used_bytes) = said_bytes.or_else(|| heapr_proc::resident_bytes(pid)) else {
        bail!("its virtual machine does not say how large its heap is, so that --max-pause cannot be kept")
    };
    let expected = PAUSE_AT_LEAST + PAUSE_PER_GIB.mul_f64(used_bytes as f64 / f64::from(1 << 30));
    let told = duration(expected.as_nanos() as u64);
    ensure!(
        expected <= options.max_pause,
        "its virtual machine would stand still for up to about {told}, and may for {} ms: it did not stop; \
         --max-pause allows more",
        options.max_pause.as_millis()
    );
    if !options.is_quiet && asked.format == Format::Text {
        let what = if said_bytes.is_some() { "of its Java heap" } else { "of memory" };
        tell!(
            "heapr: process {pid} uses {} {what}: its virtual machine collects garbage, and stands still for up \
             to about {told} while it writes",
            bytes(used_bytes)
        );
    }
    Ok(used_bytes)
}

impl Facts {
    fn print(&self) {
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
        say!(
            "  its virtual machine stood still for up to {}, and wrote {}, which is removed",
            duration(self.pause.as_nanos() as u64),
            bytes(self.dump_bytes)
        );
    }

    fn json(&self, pid: u32, contents: Contents) -> Value {
        json!({
            "file": self.path.to_string_lossy(),
            "pids": [pid],
            "heap": "java",
            "runtime": self.runtime,
            "object_count": self.amounts.object_count,
            "object_bytes": self.amounts.object_bytes,
            "native_bytes": self.amounts.native_bytes,
            "reference_count": self.reference_count,
            "garbage_count": Value::Null,
            "pause_ns": self.pause.as_nanos() as u64,
            "dump_bytes": self.dump_bytes,
            "taken_ns": self.taken_in.as_nanos() as u64,
            "contents": if contents == Contents::Strings { "strings" } else { "names" },
            "notes": self.notes,
        })
    }
}
