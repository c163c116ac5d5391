//! `heapr snapshot every` of processes that run an interpreter: a snapshot of each in equal
//! intervals.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::bail;
use heapr_session::ManagedRequest;

use super::take::{interpreter_of, output_after, take_one};
use crate::processes;
use crate::snapshot_take::{EveryQuestion, interrupt};

/// Numbers of snapshots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Number of snapshots of each process; `None`: until it ends.
    pub(crate) count: Option<u32>,
    /// Number of the last snapshots of each process whose files stay; `None`: all.
    pub(crate) keep: Option<u32>,
}

/// A process, and the files of its snapshots.
struct Watched {
    pid: u32,
    rounds: u32,
    /// Number in the name of the last file; 0 before the first.
    last_number: u32,
    files: VecDeque<PathBuf>,
    has_ended: bool,
}

/// Runs the command.
pub(crate) fn every(
    asked: &EveryQuestion,
    request: &ManagedRequest,
    limits: Limits,
    is_quiet: bool,
) -> anyhow::Result<ExitCode> {
    let (period, names) = asked.interval_and_names()?;
    let folder = asked.output.as_deref().unwrap_or(Path::new(""));
    if asked.output.is_some() && !folder.is_dir() {
        bail!("-o names no directory, and each snapshot of objects has a file of its own");
    }
    let pids = processes::named_with_children(names, asked.tree)?;
    let is_cancelled = interrupt::watch()?;
    let watch =
        |&pid: &u32| Watched { pid, rounds: 0, last_number: 0, files: VecDeque::new(), has_ended: false };
    let mut all: Vec<Watched> = pids.iter().map(watch).collect();
    let mut next = Instant::now();
    while !is_cancelled.load(Ordering::Relaxed) && all.iter().any(|watched| !watched.has_ended) {
        for watched in all.iter_mut().filter(|watched| !watched.has_ended) {
            watched.look(folder, request, limits, is_quiet);
        }
        // A snapshot that took longer than the period delays the next one.
        next = (next + period).max(Instant::now() + period / 2);
        if all.iter().any(|watched| !watched.has_ended) {
            sleep_until(next, &is_cancelled);
        }
    }
    if all.iter().all(|watched| watched.rounds == 0) && !is_cancelled.load(Ordering::Relaxed) {
        bail!("no snapshot was taken");
    }
    Ok(ExitCode::SUCCESS)
}

impl Watched {
    fn look(&mut self, folder: &Path, request: &ManagedRequest, limits: Limits, is_quiet: bool) {
        let (path, number) = output_after(self.last_number, folder, self.pid);
        let interpreter = interpreter_of(self.pid).unwrap_or(request.interpreter);
        match take_one(self.pid, path, false, &ManagedRequest { interpreter, ..*request }) {
            Ok(facts) => {
                self.rounds += 1;
                self.last_number = number;
                if !is_quiet {
                    say!("{}", facts.path.display());
                }
                self.files.push_back(facts.path);
                self.delete_old(limits.keep);
            }
            Err(error) => {
                let is_gone = !heapr_proc::folder(self.pid).exists();
                // A process that was seen before may end at any time.
                if !is_gone || self.rounds == 0 {
                    tell!("heapr: {error:#}");
                }
                // The first round shows whether snapshots work at all; later ones may fail by
                // chance.
                self.has_ended = is_gone || self.rounds == 0;
            }
        }
        self.has_ended |= limits.count.is_some_and(|count| self.rounds >= count);
    }

    fn delete_old(&mut self, keep: Option<u32>) {
        while keep.is_some_and(|keep| self.files.len() > keep as usize) {
            let Some(path) = self.files.pop_front() else { return };
            if let Err(error) = std::fs::remove_file(&path) {
                tell!("heapr: cannot delete {}: {error}", path.display());
            }
        }
    }
}

/// Sleeps in short pieces, so that Ctrl-C is noticed.
fn sleep_until(time: Instant, is_cancelled: &AtomicBool) {
    const PIECE: Duration = Duration::from_millis(100);
    while Instant::now() < time && !is_cancelled.load(Ordering::Relaxed) {
        std::thread::sleep(PIECE.min(time.saturating_duration_since(Instant::now())));
    }
}
