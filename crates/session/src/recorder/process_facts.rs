//! What /proc tells of a process. Everything may vanish at any moment: then there is no answer.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Inode of this process's process namespace; 0 if unknown.
pub(crate) fn own_namespace() -> u32 {
    heapr_ring::writer::process_namespace()
}

/// This process's id as /proc names it: another than its own where /proc is that of a namespace further out.
pub(crate) fn own_id_in_proc() -> u32 {
    let link = fs::read_link("/proc/self").ok();
    link.and_then(|link| link.to_str()?.parse().ok()).unwrap_or_else(std::process::id)
}

/// Whether /proc names the processes of this process's namespace as they name themselves.
pub(crate) fn is_proc_of_own_namespace() -> bool {
    static IS_OWN: OnceLock<bool> = OnceLock::new();
    *IS_OWN.get_or_init(|| own_id_in_proc() == std::process::id())
}

/// The ids of a process or thread in all namespaces from ours inwards, from the text of its status file.
fn namespace_ids(status: &str) -> Vec<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    line.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// The process that has id `inner_pid` in the process namespace `namespace`, by its id as we see it.
pub(crate) fn outer_pid(inner_pid: u32, namespace: u32) -> Option<u32> {
    let wanted = format!("pid:[{namespace}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|pid| {
        let link = fs::read_link(format!("/proc/{pid}/ns/pid"));
        link.is_ok_and(|link| link.as_os_str() == wanted.as_str())
            && fs::read_to_string(format!("/proc/{pid}/status"))
                .is_ok_and(|status| namespace_ids(&status).last() == Some(&inner_pid))
    })
}

/// The thread that sees itself as `inner_tid`, by its id as we see it.
pub(crate) fn outer_tid(pid: u32, inner_tid: u32) -> Option<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let mut ids = threads.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|tid| {
        fs::read_to_string(format!("/proc/{pid}/task/{tid}/status"))
            .is_ok_and(|status| namespace_ids(&status).last() == Some(&inner_tid))
    })
}

/// What tells a process that runs a program from all others: when it was started, and where its first stack begins, which an exec
/// changes.
pub(crate) fn image(pid: u32) -> Option<[u64; 2]> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state …`: the name may hold anything. Fields 22 and 28.
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    Some([fields.nth(19)?.parse().ok()?, fields.nth(5)?.parse().ok()?])
}

/// Path of the executable; empty if it cannot be read.
pub(crate) fn executable(pid: u32) -> String {
    fs::read_link(format!("/proc/{}/exe", heapr_proc::telling_thread(pid)))
        .map(|path| path.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Whether two executables' paths may be of one program: as seen from two root directories, or with its file deleted meanwhile. An unknown
/// one may be any.
pub(crate) fn may_be_same_program(one: &str, other: &str) -> bool {
    let name = |path: &str| Path::new(path.trim_end_matches(" (deleted)")).file_name().map(OsStr::to_owned);
    one.is_empty() || other.is_empty() || name(one) == name(other)
}

/// The command line.
pub(crate) fn command_line(pid: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{}/cmdline", heapr_proc::telling_thread(pid))).unwrap_or_default();
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Name of a thread; `None` if it does not exist.
pub(crate) fn thread_name(pid: u32, tid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned())
}

/// Out-of-memory kills since the machine was started; 0 where the kernel does not tell.
pub(crate) fn oom_kills() -> u64 {
    let counters = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = counters.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Resident set.
pub(crate) fn rss_bytes(pid: u32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{}/statm", heapr_proc::telling_thread(pid))).ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
