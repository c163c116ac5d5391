//! The path of a program as the thread that waits in exec wrote it: a link's name, or a script's.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::memory::{ProcessMemory, TargetMemory as _};

/// What a thread that waits in exec has asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecArgument {
    /// This path, as it wrote it.
    Path(PathBuf),
    /// It has not come to rest: its registers cannot be read yet.
    Running,
    /// It is gone, may not be looked at, or is in another system call.
    Unknown,
}

/// The path that a thread which waits in exec has asked for. The question about it may arrive
/// before the thread sleeps: it is given `limit` to do so.
#[must_use]
pub fn exec_argument(tid: u32, limit: Duration) -> ExecArgument {
    const POLL: Duration = Duration::from_micros(20);
    let begin = Instant::now();
    loop {
        // The call's number, its six arguments, stack pointer and place.
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
