//! Which running processes have been made ready for snapshots by a signal.
//!
//! One small file for each, in heapr's own directory: its name says which process (pid and start
//! time, so that a pid that is used again is not mistaken) and which signal, its contents where the
//! process writes to.

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

/// The signal that a process writes a snapshot on, and where to.
pub(crate) fn find(process: &Process) -> Option<(SnapshotSignal, PathBuf)> {
    SIGNALS.into_iter().find_map(|signal| {
        let directory = fs::read(path(process, signal)?).ok()?;
        Some((signal, PathBuf::from(std::ffi::OsString::from_vec(directory))))
    })
}

/// Remembers it.
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
