//! Register of running processes that write a snapshot on a signal.
//!
//! Each process has a small file in heapr's own directory. Its name holds pid, start time and
//! signal; the start time guards against a reused pid. Its contents are the folder to which the
//! process writes.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::Context;
use heapr_inspector::{Process, SnapshotSignal};

use super::node_run::state_directory;
use crate::output::OutputFile;

const SIGNALS: [SnapshotSignal; 2] = [SnapshotSignal::Usr1, SnapshotSignal::Usr2];

/// Returns the signal on which a process writes a snapshot, and its folder.
pub(crate) fn find(process: &Process) -> Option<(SnapshotSignal, PathBuf)> {
    SIGNALS.into_iter().find_map(|signal| {
        let directory = fs::read(path(process, signal)?).ok()?;
        Some((signal, PathBuf::from(std::ffi::OsString::from_vec(directory))))
    })
}

/// Registers a process.
pub(crate) fn remember(
    process: &Process,
    signal: SnapshotSignal,
    directory: &std::path::Path,
) -> anyhow::Result<()> {
    let path = path(process, signal).context("there is no home directory to remember it in")?;
    let folder = path.parent().unwrap_or(&path);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    forget_ended(folder);
    let mut file = OutputFile::create(&path, true)?;
    file.write_all(directory.as_os_str().as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.keep().map(drop)
}

fn path(process: &Process, signal: SnapshotSignal) -> Option<PathBuf> {
    let name = format!("{}.{}.{}", process.pid, process.start_ticks(), signal.name());
    Some(state_directory()?.join("prepared").join(name))
}

fn forget_ended(folder: &std::path::Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.split('.').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| Process::examine(pid).is_err()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
