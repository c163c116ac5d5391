//! Heap dump that a virtual machine writes: its file is open here, and has no name any more.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, lchown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use super::attach::Attached;
use super::error::AttachError;

/// Time between two looks for the file.
const STEP: Duration = Duration::from_millis(2);
/// Name of the file in its private folder.
const FILE: &str = "heap.hprof";
/// Largest number of names that are tried for the folder.
const TRIES: u32 = 100;
/// Shell's commands that remove a folder when their input ends: when heapr ends, in any way.
const GUARD: &str = "d=$(pwd -P); read -r line; rm -f ./*; cd /; rmdir -- \"$d\" 2>/dev/null || rmdir -- \"$1\" 2>/dev/null || :";

/// Heap dump of a running process.
#[derive(Debug)]
pub struct HeapDump {
    file: File,
    /// Time from the command to its answer: the process stood still for most of it.
    pub written_in: Duration,
}

/// Private folder of the process's own user, with a shell that removes it even if heapr is killed.
struct Folder {
    /// Path as the process sees it.
    inner: PathBuf,
    /// Path here.
    outer: PathBuf,
    guard: Option<Child>,
}

impl Folder {
    fn make(attached: &Attached) -> Result<Self, AttachError> {
        let pid = attached.pid;
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_else(|_| PathBuf::from("/"));
        let mut last = None;
        let parents =
            [(Path::new("/tmp"), format!("/proc/{pid}/root/tmp")), (&*cwd, format!("/proc/{pid}/cwd/."))];
        for (inner_parent, outer_parent) in parents {
            // A link could lead out of the process's own root.
            if !std::fs::symlink_metadata(&outer_parent).is_ok_and(|metadata| metadata.is_dir()) {
                continue;
            }
            for number in 0..TRIES {
                let name = format!(".heapr-{}-{pid}-{number}", std::process::id());
                let (inner, outer) = (inner_parent.join(&name), Path::new(&outer_parent).join(&name));
                match DirBuilder::new().mode(0o700).create(&outer) {
                    Ok(()) => return Self::give(inner, outer, attached.user),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => {
                        last = Some(AttachError::of_file(outer, error));
                        break;
                    }
                }
            }
        }
        Err(last.unwrap_or(AttachError::NoHotSpot))
    }

    /// Gives the folder to the process's user.
    fn give(inner: PathBuf, outer: PathBuf, (user, group): (u32, u32)) -> Result<Self, AttachError> {
        let mut folder = Self { inner, outer, guard: None };
        if rustix::process::geteuid().as_raw() != user {
            lchown(&folder.outer, Some(user), Some(group))
                .map_err(|source| AttachError::of_file(&folder.outer, source))?;
        }
        // Its own process group: a signal of the terminal to heapr does not end it.
        let guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "sh"])
            .arg(&folder.outer)
            .current_dir(&folder.outer)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        folder.guard = guard.ok();
        Ok(folder)
    }

    fn file(&self) -> PathBuf {
        self.outer.join(FILE)
    }

    /// Opens the file and removes its name, if it is there.
    fn take(&self) -> Option<File> {
        // The folder is the process's: a link or a pipe in it is not its dump.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(flags.bits().cast_signed()).open(self.file()).ok()?;
        let _ = std::fs::remove_file(self.file());
        file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
        let _ = std::fs::remove_file(self.file());
        let _ = std::fs::remove_dir(&self.outer);
    }
}

impl HeapDump {
    /// Has the virtual machine write its live objects.
    ///
    /// # Errors
    /// The virtual machine refuses, or its file cannot be read.
    pub fn of(attached: &Attached) -> Result<Self, AttachError> {
        let folder = Folder::make(attached)?;
        let path = folder.inner.join(FILE);
        let path = path.to_string_lossy();
        let begin = Instant::now();
        let (answer, early) = scope(|scope| {
            let asked = scope.spawn(|| attached.command(&["dumpheap", &path, "-live"]));
            let mut early = None;
            // The file loses its name as soon as it has one: whatever ends heapr, it is gone.
            while !asked.is_finished() && early.is_none() {
                early = folder.take();
                sleep(STEP);
            }
            (asked.join(), early)
        });
        let written_in = begin.elapsed();
        answer.unwrap_or(Err(AttachError::NoAnswer { seconds: written_in.as_secs() }))?;
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let file =
            early.or_else(|| folder.take()).ok_or_else(|| AttachError::of_file(folder.file(), missing()))?;
        Ok(Self { file, written_in })
    }

    /// Bytes of the dump.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Opens the dump at its beginning.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?))
    }
}
