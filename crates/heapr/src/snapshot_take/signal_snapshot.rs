//! `heapr snapshot take --signal`: the process writes the snapshot, and heapr moves it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use heapr_inspector::{
    HeapFacts, HeapUsage, Process, SignalFile, SnapshotSignal, anonymous_bytes, heap_shape, written_directory,
};

use super::file_name::Destination;
use super::preflight::Consent;
use super::{preflight, ready_processes};
use crate::output::OutputFile;
use heapr_table::quantity;

/// Makes the process write a snapshot, and moves it to its destination. Without `signal`, the
/// signal for which the process was prepared is sent.
pub(crate) fn take(
    pid: u32,
    signal: Option<SnapshotSignal>,
    consent: Consent,
    wait: Duration,
    destination: &Destination,
    is_cancelled: &AtomicBool,
) -> anyhow::Result<PathBuf> {
    let process = Process::examine(pid)?;
    let prepared =
        ready_processes::find(&process).filter(|(of, _)| signal.is_none_or(|signal| signal == *of));
    let Some(signal) = signal.or(prepared.as_ref().map(|(signal, _)| *signal)) else {
        anyhow::bail!("process {pid} has not been prepared for snapshots by a signal");
    };
    let is_sure = consent.may_risk || prepared.is_some();
    signal.check(&process, is_sure)?;
    let directory = prepared.as_ref().map(|(_, directory)| directory.as_path());
    let what = format!("process {pid}");
    // The heap's size cannot be requested; it is at most the process's anonymous memory.
    let heap_bytes = anonymous_bytes(pid);
    let usage = HeapUsage { used_bytes: heap_bytes, total_bytes: heap_bytes };
    let facts = HeapFacts { usage, shape: heap_shape(pid), has_numeric_values: false, node_major: None };
    // The process writes the snapshot where it may, and heapr moves it from there.
    let own = prepared.is_none().then(|| written_directory(&process));
    let directories: Vec<&Path> = own.as_deref().into_iter().chain([destination.directory()]).collect();
    preflight::check(pid, &what, facts, &directories, consent)?;
    let written = signal.take(&process, is_sure, directory, wait, &mut |_| {}, is_cancelled)?;
    let path = fetch(&written, destination)?;
    if !consent.is_quiet {
        tell!(
            "heapr: {}: {}, written by the process in {}; which scripts it runs was not asked",
            path.display(),
            quantity::bytes(written.bytes),
            preflight::seconds(written.took)
        );
    }
    Ok(path)
}

/// Moves the file, or copies it from another disk or a container.
fn fetch(written: &SignalFile, destination: &Destination) -> anyhow::Result<PathBuf> {
    let (path, may_replace) = match destination {
        Destination::File { path, may_replace } => (path.clone(), *may_replace),
        Destination::Directory(directory) => {
            (directory.join(written.path.file_name().unwrap_or_default()), false)
        }
    };
    if is_same_file(&written.path, &path) {
        return Ok(path);
    }
    let mut file = OutputFile::create(&path, may_replace)?;
    if fs::rename(&written.path, file.partial_path()).is_ok() {
        // Older versions of Node let everybody read it.
        fs::set_permissions(file.partial_path(), fs::Permissions::from_mode(0o600))
            .with_context(|| format!("cannot make {} private", path.display()))?;
        return file.keep();
    }
    let cannot = || format!("cannot copy {}", written.path.display());
    io::copy(&mut File::open(&written.path).with_context(cannot)?, &mut file).with_context(cannot)?;
    let path = file.keep()?;
    fs::remove_file(&written.path).with_context(|| format!("cannot delete {}", written.path.display()))?;
    Ok(path)
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    matches!((a.symlink_metadata(), b.symlink_metadata()), (Ok(a), Ok(b)) if a.ino() == b.ino() && a.dev() == b.dev())
}
