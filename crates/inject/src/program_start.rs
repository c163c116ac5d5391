//! Start of a program under the conditions in which heapr itself was started.
//!
//! The standard library sorts an environment that it changes, and drops entries without a valid
//! name. It gives programs the default action for SIGPIPE and an empty signal mask, and replaces
//! closed standard streams by /dev/null.
//!
//! heapr itself raises its limits to the hard ones, and handles a file that may not grow like a
//! full disk ([`leave_given_limits`]). The functions here keep all of this from the program.

use std::ffi::{CString, OsStr, OsString, c_char};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

unsafe extern "C" {
    static mut environ: *const *const c_char;
}

/// Type of a limit's number in the C library that heapr is built with.
#[cfg(not(target_env = "musl"))]
type LimitNumber = libc::__rlimit_resource_t;
#[cfg(target_env = "musl")]
type LimitNumber = libc::c_int;

/// Signals that heapr ignores.
const IGNORED_HERE: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Limits that heapr raises as far as permitted.
const WIDENED: [LimitNumber; 7] = [
    libc::RLIMIT_NOFILE,
    libc::RLIMIT_FSIZE,
    libc::RLIMIT_AS,
    libc::RLIMIT_DATA,
    libc::RLIMIT_STACK,
    libc::RLIMIT_NPROC,
    libc::RLIMIT_CPU,
];

/// Conditions in which this process was started. Written once, before `main`.
struct Given {
    /// Whether [`leave_given_limits`] was called. Another program that uses this library keeps its
    /// own settings.
    is_left: AtomicBool,
    /// A bit for each of [`IGNORED_HERE`].
    ignored: AtomicU32,
    /// A bit for each standard stream that was closed.
    closed: AtomicU32,
    /// Blocked signals, the first in bit 0.
    mask: AtomicU64,
    /// Soft and hard limit of each of [`WIDENED`].
    limits: [[AtomicU64; 2]; WIDENED.len()],
}

static GIVEN: Given = Given {
    is_left: AtomicBool::new(false),
    ignored: AtomicU32::new(0),
    closed: AtomicU32::new(0),
    mask: AtomicU64::new(0),
    limits: [const { [const { AtomicU64::new(libc::RLIM_INFINITY) }; 2] }; WIDENED.len()],
};

/// Entry that runs before Rust's own start, which changes signals and streams.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn(libc::c_int, *const *const c_char) = look_at_start;

/// Stores the conditions of this process's start. Only glibc passes the words of the command line.
extern "C" fn look_at_start(count: libc::c_int, words: *const *const c_char) {
    #[cfg(target_env = "gnu")]
    crate::command_words::note_words(usize::try_from(count).unwrap_or(0), words);
    #[cfg(not(target_env = "gnu"))]
    let _ = (count, words);
    for (number, &signal) in IGNORED_HERE.iter().enumerate() {
        // SAFETY: the call only reads the action; the structure is plain data for which zeros are
        // valid.
        let is_ignored = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
                && action.sa_sigaction == libc::SIG_IGN
        };
        GIVEN.ignored.fetch_or(u32::from(is_ignored) << number, Relaxed);
    }
    for stream in 0..3 {
        // SAFETY: the call only reads flags.
        let is_closed = unsafe { libc::fcntl(stream, libc::F_GETFD) } == -1;
        GIVEN.closed.fetch_or(u32::from(is_closed) << stream, Relaxed);
    }
    // SAFETY: the call only reads the mask; the set is plain data, larger than the 64 signals of
    // Linux.
    let mask = unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, std::ptr::null(), &raw mut mask);
        (&raw const mask).cast::<u64>().read_unaligned()
    };
    GIVEN.mask.store(mask, Relaxed);
    for (&resource, [soft, hard]) in WIDENED.iter().zip(&GIVEN.limits) {
        if let Some(limit) = limit_of(resource) {
            soft.store(limit.rlim_cur, Relaxed);
            hard.store(limit.rlim_max, Relaxed);
        }
    }
}

fn limit_of(resource: LimitNumber) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit.
    (unsafe { libc::getrlimit(resource, &raw mut limit) } == 0).then_some(limit)
}

/// Raises this process's limits as far as permitted, and makes a file that may not grow an error
/// instead of a fatal signal. Programs started by [`start_as_given`] or [`with_given_limits`] get
/// the original limits.
pub fn leave_given_limits() {
    GIVEN.is_left.store(true, Relaxed);
    for (&resource, [soft, hard]) in WIDENED.iter().zip(&GIVEN.limits) {
        let (soft, hard) = (soft.load(Relaxed), hard.load(Relaxed));
        // SIGKILL comes at the hard limit of processor time; the second before it is for an orderly
        // end.
        let is_time = resource == libc::RLIMIT_CPU && hard != libc::RLIM_INFINITY;
        let wanted = if is_time { hard.saturating_sub(1).max(1) } else { hard };
        if wanted != soft {
            // SAFETY: the call has no preconditions; if it fails, the limit is unchanged.
            let _ = unsafe { libc::setrlimit(resource, &libc::rlimit { rlim_cur: wanted, rlim_max: hard }) };
        }
    }
    // SAFETY: as above; this process has no handler for the signal.
    let _ = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// True if the stack limit is below `bytes`, so that heapr's code may not fit on the first thread's
/// stack.
#[must_use]
pub fn has_small_stack(bytes: u64) -> bool {
    limit_of(libc::RLIMIT_STACK).is_some_and(|limit| limit.rlim_cur < bytes)
}

/// Size in bytes of the largest file that this process may write; `None` if unlimited.
#[must_use]
pub fn file_bytes_max() -> Option<u64> {
    limit_of(libc::RLIMIT_FSIZE).map(|limit| limit.rlim_cur).filter(|&bytes| bytes != libc::RLIM_INFINITY)
}

/// Restores signals and limits to their state at the start of this process.
///
/// # Safety
/// 1. Must be called in a forked child, or just before an exec.
pub(crate) unsafe fn restore_given() {
    if !GIVEN.is_left.load(Relaxed) {
        return;
    }
    let ignored = GIVEN.ignored.load(Relaxed);
    for (number, &signal) in IGNORED_HERE.iter().enumerate() {
        let action = if ignored >> number & 1 != 0 { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: the action is not a handler.
        let _ = unsafe { libc::signal(signal, action) };
    }
    for (&resource, [soft, hard]) in WIDENED.iter().zip(&GIVEN.limits) {
        let limit = libc::rlimit { rlim_cur: soft.load(Relaxed), rlim_max: hard.load(Relaxed) };
        // SAFETY: the call has no preconditions; it only restores the original limit.
        let _ = unsafe { libc::setrlimit(resource, &raw const limit) };
    }
    // SAFETY: the set is plain data, of which the kernel reads 64 bits.
    unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        (&raw mut mask).cast::<u64>().write_unaligned(GIVEN.mask.load(Relaxed));
        let _ = libc::sigprocmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut());
    }
}

/// An environment block that outlives the fork.
struct Block {
    _entries: Vec<CString>,
    /// Pointers to the entries, and a null at the end.
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers are to the entries, which never change.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    fn new(entries: Vec<CString>) -> Self {
        let pointers = entries.iter().map(|entry| entry.as_ptr()).chain([std::ptr::null()]).collect();
        Self { _entries: entries, pointers }
    }

    fn list(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

/// Makes `command` start its program with this process's environment, each entry unchanged except
/// for `changes`. A variable that exists is replaced in its position, another one comes last. The
/// program also gets the original signals, limits and closed streams.
///
/// The command's own environment and streams must not be set.
pub fn start_as_given(command: &mut Command, changes: &[(OsString, OsString)]) {
    let block = Block::new(changed(own_environment(), changes));
    let closed = GIVEN.closed.load(Relaxed);
    let before_exec = move || -> io::Result<()> {
        // SAFETY: the code runs in the forked child, which has one thread, or in this process just
        // before its exec. The block lives in the closure. The streams lead to /dev/null, and are
        // not used any more.
        unsafe {
            environ = block.list();
            restore_given();
            (0..3).filter(|stream| closed >> stream & 1 != 0).for_each(|stream| {
                let _ = libc::close(stream);
            });
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing, and calls only functions permitted between fork and
    // exec.
    unsafe { command.pre_exec(before_exec) };
}

/// Makes `command` start its program with this process's original signals and limits.
pub fn with_given_limits(command: &mut Command) {
    let before_exec = || -> io::Result<()> {
        // SAFETY: the code runs in the forked child, before its exec.
        unsafe { restore_given() };
        Ok(())
    };
    // SAFETY: the closure allocates nothing, and calls only functions permitted between fork and
    // exec.
    unsafe { command.pre_exec(before_exec) };
}

/// A child that waits before its exec until it is seized.
#[derive(Debug)]
pub struct WaitingChild {
    pid: std::fs::File,
    go: std::fs::File,
}

impl WaitingChild {
    /// Process id of the child; waits until it exists. `None` if the child failed before.
    #[must_use]
    pub fn pid(&mut self) -> Option<u32> {
        use std::io::Read as _;
        let mut bytes = [0; 4];
        self.pid.read_exact(&mut bytes).ok().map(|()| u32::from_ne_bytes(bytes))
    }

    /// Lets the child exec.
    pub fn go(mut self) {
        use std::io::Write as _;
        let _ = self.go.write_all(&[0]);
    }
}

/// Makes `command` wait in its child until [`WaitingChild::go`]. Another thread must call that,
/// because the spawning thread waits for the exec.
///
/// # Errors
/// Returns an error if no descriptors are free.
pub fn wait_before_exec(command: &mut Command) -> io::Result<WaitingChild> {
    use std::os::fd::AsRawFd as _;
    let (pid_read, pid_write) = io::pipe()?;
    let (go_read, go_write) = io::pipe()?;
    let go_number = go_write.as_raw_fd();
    let before_exec = move || -> io::Result<()> {
        // SAFETY: the code runs in the forked child, before its exec, and calls only permitted
        // functions. The closed descriptor is the child's copy of the write end. The child thus
        // continues when the process that should release it is gone.
        unsafe {
            let _ = libc::close(go_number);
            let pid = libc::getpid().to_ne_bytes();
            let _ = libc::write(pid_write.as_raw_fd(), pid.as_ptr().cast(), pid.len());
            let mut answer = [0_u8; 1];
            let _ = libc::read(go_read.as_raw_fd(), answer.as_mut_ptr().cast(), 1);
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing, and calls only functions permitted between fork and
    // exec.
    unsafe { command.pre_exec(before_exec) };
    Ok(WaitingChild { pid: OwnedFd::from(pid_read).into(), go: OwnedFd::from(go_write).into() })
}

/// Entries of this process's environment.
fn own_environment() -> Vec<CString> {
    let mut entries = Vec::new();
    // SAFETY: the list is of strings and ends with null; no code in this process changes the
    // environment.
    unsafe {
        let mut next = environ;
        while !next.is_null() && !(*next).is_null() {
            entries.push(std::ffi::CStr::from_ptr(*next).to_owned());
            next = next.add(1);
        }
    }
    entries
}

fn changed(mut entries: Vec<CString>, changes: &[(OsString, OsString)]) -> Vec<CString> {
    for (name, value) in changes {
        let start = [name.as_bytes(), b"="].concat();
        // Values without a zero byte are assumed.
        let Ok(entry) = CString::new([&start[..], OsStr::as_bytes(value)].concat()) else { continue };
        let place = entries.iter().position(|entry| entry.to_bytes().starts_with(&start));
        entries.retain({
            let mut number = 0;
            move |entry| {
                number += 1;
                Some(number - 1) == place || !entry.to_bytes().starts_with(&start)
            }
        });
        match place.and_then(|place| entries.get_mut(place)) {
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_changed_changes() {
        let list = |entries: &[&str]| -> Vec<CString> {
            entries.iter().map(|entry| CString::new(*entry).unwrap()).collect()
        };
        let given =
            list(&["B=1", "LD_PRELOAD=x", "no sign", "A=2", "=odd", "LD_PRELOAD=y", "B=3", "LD_PRELOADS=z"]);
        let changes =
            [("LD_PRELOAD", "agent:x"), ("SESSION", "1:2")].map(|(name, value)| (name.into(), value.into()));
        let expected = list(&[
            "B=1",
            "LD_PRELOAD=agent:x",
            "no sign",
            "A=2",
            "=odd",
            "B=3",
            "LD_PRELOADS=z",
            "SESSION=1:2",
        ]);
        assert_eq!(changed(given.clone(), &changes), expected);
        assert_eq!(changed(given.clone(), &[]), given);
    }
}
