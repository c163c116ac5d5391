//! Path argument of a thread that waits in exec: a program, a link or a script.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::memory::{ProcessMemory, TargetMemory as _};

/// Result of reading the argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecArgument {
    /// Path as the thread passed it.
    Path(PathBuf),
    /// The thread is still running: its registers cannot be read yet.
    Running,
    /// The thread is gone, may not be read, or is in another system call.
    Unknown,
}

/// Reads the path that a thread waiting in exec has passed. The request may arrive before the
/// thread sleeps, so that it has `limit` to do so.
#[must_use]
pub fn exec_argument(tid: u32, limit: Duration) -> ExecArgument {
    const POLL: Duration = Duration::from_micros(20);
    let begin = Instant::now();
    loop {
        // Fields: number of the call, six arguments, stack pointer, instruction pointer.
        let Ok(text) = fs::read_to_string(format!("/proc/{tid}/syscall")) else {
            return ExecArgument::Unknown;
        };
        if !text.starts_with("running") {
            return path_argument(tid, &text).map_or(ExecArgument::Unknown, ExecArgument::Path);
        }
        if begin.elapsed() >= limit {
            return ExecArgument::Running;
        }
        std::thread::sleep(POLL);
    }
}

fn path_argument(tid: u32, call: &str) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    const PATH_BYTES_MAX: usize = 4096;
    let mut words = call.split_ascii_whitespace();
    let argument = match words.next()?.parse().ok()? {
        libc::SYS_execve => 0,
        libc::SYS_execveat => 1,
        _ => return None,
    };
    let address_avma = u64::from_str_radix(words.nth(argument)?.strip_prefix("0x")?, 16).ok()?;
    let memory = ProcessMemory::open(tid).ok()?;
    let path = memory.read_string(address_avma, PATH_BYTES_MAX).ok()?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(path)))
}
