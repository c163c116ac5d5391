//! `heapr snapshot take` of processes that run Java.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use heapr_managed::{AttachError, Attached, Contents, HeapDump, check_hotspot, read_hprof};
use heapr_session::may_be_read;
use heapr_table::quantity::{bytes, duration, plural};
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
    /// Longest time for which the process may stand still, if that was given.
    pub(crate) max_pause: Option<Duration>,
    pub(crate) contents: Contents,
    pub(crate) is_quiet: bool,
}

/// True if a snapshot without `--heap` is of Java's objects: the process runs a virtual machine
/// that can be asked. If it cannot, the reason is told.
pub(crate) fn is_java_chosen(pid: u32, is_quiet: bool) -> bool {
    match check_hotspot(pid) {
        Ok(()) => true,
        Err(AttachError::NoHotSpot) => false,
        Err(reason) => {
            if !is_quiet && may_be_read(pid) {
                tell!("heapr: process {pid}: {reason}; so its native heap is taken");
            }
            false
        }
    }
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
                tell!("heapr: process {pid}: {error:#}");
                status = ExitCode::from(2);
            }
        }
    }
    if asked.format == Format::Json {
        crate::plain_text::say_json(&json!({ "schema": "heapr.snapshot.take/1", "snapshots": taken }));
    }
    Ok(status)
}

/// Facts of a written snapshot.
struct Facts {
    path: PathBuf,
    runtime: String,
    object_count: u32,
    object_bytes: u64,
    reference_count: u32,
    dump_bytes: u64,
    pause: Duration,
    taken_in: Duration,
}

fn take_one(pid: u32, asked: &TakeQuestion, options: &JavaTakeOptions) -> anyhow::Result<Facts> {
    let path = output(asked.output.as_deref(), pid, asked.force);
    if !asked.force && path.symlink_metadata().is_ok() {
        return Err(crate::output::already_exists(&path));
    }
    let file = OutputFile::create(&path, asked.force)?;
    let begin = Instant::now();
    let attached = Attached::to(pid)?;
    told_before(pid, &attached, asked, options)?;
    let dump = HeapDump::of(&attached)?;
    let heap = read_hprof(&|| dump.open(), options.contents).context("its heap dump cannot be read")?;
    for note in &heap.notes {
        tell!("heapr: process {pid}: {note}");
    }
    let snapshot = heap.snapshot;
    let cannot = || format!("cannot write {}", path.display());
    let mut out = BufWriter::with_capacity(1 << 20, file);
    snapshot.write(&mut out).with_context(cannot)?;
    out.flush().with_context(cannot)?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(cannot)?.keep()?;
    let object_bytes =
        (0..snapshot.node_count()).fold(0_u64, |sum, node| sum.saturating_add(snapshot.self_bytes(node)));
    Ok(Facts {
        path,
        runtime: snapshot.meta().dialect.as_ref().map(|it| it.runtime.clone()).unwrap_or_default(),
        object_count: snapshot.node_count(),
        object_bytes,
        reference_count: snapshot.edge_count(),
        dump_bytes: dump.bytes(),
        pause: dump.written_in,
        taken_in: begin.elapsed(),
    })
}

/// Says how long the process will stand still. Refuses if that is more than allowed.
fn told_before(
    pid: u32,
    attached: &Attached,
    asked: &TakeQuestion,
    options: &JavaTakeOptions,
) -> anyhow::Result<()> {
    let used_bytes = attached.used_bytes();
    let expected =
        used_bytes.map(|used| PAUSE_AT_LEAST + PAUSE_PER_GIB.mul_f64(used as f64 / f64::from(1 << 30)));
    if let Some(most) = options.max_pause {
        let Some(expected) = expected else {
            bail!(
                "its virtual machine does not say how large its heap is, so that --max-pause cannot be kept"
            )
        };
        ensure!(
            expected <= most,
            "its virtual machine would stand still for about {}, longer than --max-pause {}: nothing was asked of it",
            duration(expected.as_nanos() as u64),
            most.as_millis()
        );
    }
    if !options.is_quiet && asked.format == Format::Text {
        match (used_bytes, expected) {
            (Some(used), Some(expected)) => tell!(
                "heapr: process {pid} uses {} of its Java heap: its virtual machine collects garbage, and stands still for up \
                 to about {} while it writes",
                bytes(used),
                duration(expected.as_nanos() as u64)
            ),
            _ => tell!("heapr: process {pid}: its virtual machine stands still while it writes its heap"),
        }
    }
    Ok(())
}

impl Facts {
    fn print(&self) {
        say!(
            "{}: {}: {} of {}, {}, in {}",
            self.path.display(),
            self.runtime,
            bytes(self.object_bytes),
            plural(self.object_count.into(), "object"),
            plural(self.reference_count.into(), "reference"),
            duration(self.taken_in.as_nanos() as u64),
        );
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
            "object_count": self.object_count,
            "object_bytes": self.object_bytes,
            "reference_count": self.reference_count,
            "garbage_count": Value::Null,
            "pause_ns": self.pause.as_nanos() as u64,
            "dump_bytes": self.dump_bytes,
            "taken_ns": self.taken_in.as_nanos() as u64,
            "contents": if contents == Contents::Strings { "strings" } else { "names" },
        })
    }
}
