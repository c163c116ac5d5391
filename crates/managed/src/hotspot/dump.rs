//! Heap dump that a virtual machine writes: its file is open here, and has no name any more.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::fd::AsRawFd as _;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use super::attach::Attached;
use super::error::AttachError;
use super::folder::Folder;

/// Time between two looks for the file.
const STEP: Duration = Duration::from_millis(2);
/// Shortest time after which a dump that is not ready is given up.
const ANSWER_AT_LEAST: Duration = Duration::from_secs(60);
/// Text by which a virtual machine says that all is written: its result is 0 on a full disk, too.
const WRITTEN: &str = "Heap dump file created";

/// Heap dump of a running process.
#[derive(Debug)]
pub struct HeapDump {
    file: File,
    /// Time from the command to its answer: the process stood still for most of it.
    pub written_in: Duration,
}

impl HeapDump {
    /// Has the virtual machine write its live objects. `used_bytes` is what its heap has in use, if
    /// that is known. A virtual machine that takes four times `max_pause` is given up.
    ///
    /// # Errors
    /// There is no room, the virtual machine refuses, or its file cannot be read.
    pub fn of(
        attached: &Attached,
        used_bytes: Option<u64>,
        max_pause: Duration,
    ) -> Result<Self, AttachError> {
        let folder = Folder::make(attached.pid, attached.user, used_bytes)?;
        let path = folder.inner_file();
        let text = path.to_string_lossy();
        let longest = max_pause.saturating_mul(4).max(ANSWER_AT_LEAST);
        let begin = Instant::now();
        let (answer, early) = scope(|scope| {
            let asked = scope.spawn(|| attached.command_within(&["dumpheap", &text, "-live"], longest));
            let mut early = None;
            // The file loses its name as soon as it has one: whatever ends heapr, it is gone.
            while !asked.is_finished() && early.is_none() {
                early = folder.take();
                sleep(STEP);
            }
            (asked.join(), early)
        });
        let written_in = begin.elapsed();
        let answer = answer.unwrap_or(Err(AttachError::NoAnswer { seconds: written_in.as_secs() }))?;
        if !answer.contains(WRITTEN) {
            return Err(AttachError::refused("dumpheap", "0", &answer));
        }
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let file = early.or_else(|| folder.take());
        let file = file.ok_or_else(|| AttachError::of_file(&path, missing()))?;
        Ok(Self { file, written_in })
    }

    /// Bytes of the dump.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Opens the dump at an offset.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(&self, offset: u64) -> io::Result<Option<Box<dyn Read + Send>>> {
        let mut file = File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(Some(Box::new(file)))
    }
}
