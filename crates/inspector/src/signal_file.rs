//! Snapshots that a Node process writes by itself on the signal of `--heapsnapshot-signal`.
//!
//! ```text
//! SIGUSR2 -> Heap.20261121.040213.11005.0.001.heapsnapshot in --diagnostic-dir, or the working directory
//!            0 bytes while the heap is looked through, then growing, then closed: whole
//! ```

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::error::{Error, Result};
use super::process::{Process, below_root};
use super::snapshot::{SnapshotProgress, is_end};
use super::written_place::{refuse_unwritable, written_place};

/// Interval between two checks of the directory.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Number of bytes read from a snapshot's end.
const END_BYTES: u64 = 64;

/// Signal that can be given to `--heapsnapshot-signal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotSignal {
    /// Signal SIGUSR1, which then does not open the inspector.
    Usr1,
    /// Signal SIGUSR2.
    Usr2,
}

impl SnapshotSignal {
    /// Parses a name such as `SIGUSR2` or `USR2`.
    pub fn parse(name: &str) -> Option<Self> {
        match name.strip_prefix("SIG").unwrap_or(name) {
            "USR1" => Some(Self::Usr1),
            "USR2" => Some(Self::Usr2),
            _ => None,
        }
    }

    /// Name, such as `SIGUSR2`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usr1 => "SIGUSR1",
            Self::Usr2 => "SIGUSR2",
        }
    }

    pub(crate) fn signal(self) -> Signal {
        match self {
            Self::Usr1 => Signal::USR1,
            Self::Usr2 => Signal::USR2,
        }
    }
}

/// Complete snapshot that the process has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalFile {
    /// Path, below `/proc/PID/root` if the process is in a container.
    pub path: PathBuf,
    /// Size of the file.
    pub bytes: u64,
    /// Time from the signal until the file was complete.
    pub took: Duration,
}

impl SnapshotSignal {
    /// Checks that the process was started with this signal, because the signal may have any
    /// meaning in another program. Also checks that the process can write to the snapshot's
    /// directory. `is_sure` skips both checks.
    pub fn check(self, process: &Process, is_sure: bool) -> Result<()> {
        let given = process.option("--heapsnapshot-signal");
        if is_sure {
            return Ok(());
        }
        if given.as_deref().and_then(Self::parse) == Some(self) {
            return refuse_unwritable(process, self.name());
        }
        Err(Error::NoSnapshotSignal {
            pid: process.pid,
            signal: self.name(),
            given: given.unwrap_or_default(),
        })
    }

    /// Sends the signal and waits until the file is complete, or until `wait` has passed without a
    /// file.
    ///
    /// `directory` is searched as well; it is a path as the process sees it.
    ///
    /// Unless `is_sure`, the process must have been started with `--heapsnapshot-signal`. The
    /// signal may have any meaning in another program.
    pub fn take(
        self,
        process: &Process,
        is_sure: bool,
        directory: Option<&Path>,
        wait: Duration,
        on_progress: &mut dyn FnMut(SnapshotProgress),
        is_cancelled: &AtomicBool,
    ) -> Result<SignalFile> {
        let pid = process.pid;
        self.check(process, is_sure)?;
        let mut directories = directories(process);
        directories.extend(directory.map(|directory| below_root(pid, directory)));
        let before: HashSet<_> =
            directories.iter().flat_map(|directory| files_in(directory, process)).collect();
        const ADVICE: &str = "start it with --heapsnapshot-signal, or under `heapr node`";
        process.send(self.signal(), self.name(), ADVICE)?;
        let started = Instant::now();
        loop {
            if is_cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let new = directories
                .iter()
                .flat_map(|directory| files_in(directory, process))
                .find(|path| !before.contains(path));
            match new {
                Some(path) => return wait_until_whole(process, path, started, on_progress, is_cancelled),
                None if started.elapsed() >= wait => {
                    let directories: Vec<_> =
                        directories.iter().map(|path| path.display().to_string()).collect();
                    let waited_s = wait.as_secs();
                    return Err(Error::NoFile {
                        pid,
                        signal: self.name(),
                        waited_s,
                        directories: directories.join(", "),
                    });
                }
                None if !process.is_alive() => return Err(Error::ProcessEnded { pid }),
                None => std::thread::sleep(LOOK_EVERY),
            }
        }
    }
}

/// Returns the directories that the process may write to, as paths for heapr. Older versions of
/// Node do not know `--diagnostic-dir`.
fn directories(process: &Process) -> Vec<PathBuf> {
    let working = PathBuf::from(format!("/proc/{}/cwd", process.pid));
    let resolved = fs::read_link(&working).map_or(working, |path| below_root(process.pid, &path));
    let mut directories = vec![written_directory(process)];
    if directories[0] != resolved {
        directories.push(resolved);
    }
    directories
}

/// Directory in which the process writes its snapshot on a signal, as a path for heapr.
pub fn written_directory(process: &Process) -> PathBuf {
    below_root(process.pid, &written_place(process))
}

/// Returns the snapshots of this process in a directory:
/// `Heap.DATE.TIME.PID.THREAD.NUMBER.heapsnapshot`.
fn files_in(directory: &Path, process: &Process) -> Vec<PathBuf> {
    let pid = process.inner_pid.to_string();
    let is_snapshot = |name: &OsString| {
        let Some(name) = name.to_str() else { return false };
        let parts: Vec<&str> = name.split('.').collect();
        matches!(parts[..], ["Heap", _, _, of_pid, _, _, "heapsnapshot"] if of_pid == pid)
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| is_snapshot(&entry.file_name())).map(|entry| entry.path()).collect()
}

fn wait_until_whole(
    process: &Process,
    path: PathBuf,
    started: Instant,
    on_progress: &mut dyn FnMut(SnapshotProgress),
    is_cancelled: &AtomicBool,
) -> Result<SignalFile> {
    let read_error = |source| Error::Proc { path: path.display().to_string(), source };
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, rustix::fs::Mode::empty())
        .map_err(|error| read_error(error.into()))?;
    let mut file = File::from(file);
    loop {
        if is_cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let is_alive = process.is_alive();
        let is_open = is_alive && has_open(process, &file);
        let bytes = file.metadata().map_err(read_error)?.len();
        on_progress(SnapshotProgress::Writing { bytes });
        if bytes > 0 && !is_open {
            let end = end_of(&mut file, bytes).map_err(read_error)?;
            if is_end(&end) {
                return Ok(SignalFile { path, bytes, took: started.elapsed() });
            }
            return Err(Error::NotWhole { end: String::from_utf8_lossy(&end).into_owned() });
        }
        if !is_alive {
            return Err(Error::ProcessEnded { pid: process.pid });
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn end_of(file: &mut File, bytes: u64) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(bytes.saturating_sub(END_BYTES)))?;
    let mut end = Vec::new();
    file.take(END_BYTES).read_to_end(&mut end)?;
    Ok(end)
}

/// Whether the process still has the file open; a file that cannot be compared counts as closed.
fn has_open(process: &Process, file: &File) -> bool {
    let Ok(wanted) = file.metadata() else { return false };
    let descriptors = fs::read_dir(format!("/proc/{}/fd", process.pid)).into_iter().flatten().flatten();
    descriptors.into_iter().any(|descriptor| {
        fs::metadata(descriptor.path())
            .is_ok_and(|held| held.ino() == wanted.ino() && held.dev() == wanted.dev())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_user_signals_are_names() {
        assert_eq!(SnapshotSignal::parse("SIGUSR2"), Some(SnapshotSignal::Usr2));
        assert_eq!(SnapshotSignal::parse("USR1").map(SnapshotSignal::name), Some("SIGUSR1"));
        assert_eq!(SnapshotSignal::parse("SIGKILL"), None);
        assert_eq!(SnapshotSignal::parse(""), None);
    }
}
