//! Reads facts of a process from `/proc`. A process may vanish at any moment: then the answer is
//! missing.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::OnceLock;

use heapr_proc::{Fields, Stat};

/// Inode of this process's process namespace; 0 if unknown.
pub(crate) fn own_namespace() -> u32 {
    heapr_ring::writer::process_namespace()
}

/// Returns this process's effective user id.
pub(crate) fn own_user() -> u32 {
    // Real, effective, saved, and file-system user id.
    Fields::of_self().words("Uid").nth(1).and_then(|user| user.parse().ok()).unwrap_or(0)
}

/// Returns the file name of a program as a slot has it.
pub(crate) fn told_name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}

/// Whether `/proc` shows the processes of this process's own namespace.
pub(crate) fn is_proc_of_own_namespace() -> bool {
    static IS_OWN: OnceLock<bool> = OnceLock::new();
    *IS_OWN.get_or_init(|| heapr_proc::own_pid() == std::process::id())
}

/// Returns the process with id `inner_pid` in the process namespace `namespace`, by its id in our
/// `/proc`.
pub(crate) fn outer_pid(inner_pid: u32, namespace: u32) -> Option<u32> {
    heapr_proc::pids().find(|&pid| {
        heapr_proc::namespace(pid, "pid") == Some(namespace)
            && Fields::of_process(pid).is_ok_and(|status| status.last_number("NSpid") == Some(inner_pid))
    })
}

/// Returns the process that sees itself as `inner_pid` in the process namespace `namespace`, by its
/// id in our `/proc`. `None`: `/proc` does not show it.
pub(crate) fn shown_pid(inner_pid: u32, namespace: u32) -> Option<u32> {
    let is_of_ours = namespace == 0 || namespace == own_namespace();
    if is_of_ours && is_proc_of_own_namespace() { Some(inner_pid) } else { outer_pid(inner_pid, namespace) }
}

/// Returns the thread that sees itself as `inner_tid`, by its id in our `/proc`.
pub(crate) fn outer_tid(pid: u32, inner_tid: u32) -> Option<u32> {
    let is_wanted = |status: Fields| status.last_number("NSpid") == Some(inner_tid);
    heapr_proc::threads(pid).ok()?.find(|&tid| Fields::of_thread(pid, tid).is_some_and(is_wanted))
}

/// Identity of a process image: start time of the process, and start address of its first stack,
/// which an exec changes.
pub(crate) fn image(pid: u32) -> Option<[u64; 2]> {
    let stat = Stat::of_process(pid)?;
    Some([stat.number(22)?, stat.number(28)?])
}

/// Path of the executable; empty if it cannot be read.
pub(crate) fn executable(pid: u32) -> String {
    heapr_proc::executable(pid).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Whether two executables' paths may be of one program: seen from two root directories, or with
/// its file deleted meanwhile. An unknown path matches any.
pub(crate) fn may_be_same_program(one: &str, other: &str) -> bool {
    let name = |path: &str| Path::new(path.trim_end_matches(" (deleted)")).file_name().map(OsStr::to_owned);
    one.is_empty() || other.is_empty() || name(one) == name(other)
}
