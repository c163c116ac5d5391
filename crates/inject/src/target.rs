//! What /proc tells of a target before it is touched, and which targets are refused.

use std::fs;
use std::time::{Duration, Instant};

use heapr_proc::telling_thread;

use crate::error::{Error, Result};

/// The lines of `/proc/PID/status` that matter.
#[derive(Debug, Default)]
struct Status {
    state: String,
    tracer_pid: u32,
    uids: String,
    name: String,
    inner_pid: u32,
    has_shadow_stack: bool,
    seccomp_mode: u32,
}

fn status(pid: u32) -> Option<Status> {
    let text = fs::read(format!("/proc/{pid}/task/{}/status", telling_thread(pid))).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        found.map_or("", str::trim)
    };
    Some(Status {
        state: line("State").to_owned(),
        tracer_pid: line("TracerPid").parse().unwrap_or(0),
        uids: line("Uid").to_owned(),
        name: line("Name").to_owned(),
        inner_pid: line("NStgid")
            .split_ascii_whitespace()
            .last()
            .and_then(|pid| pid.parse().ok())
            .unwrap_or(pid),
        has_shadow_stack: line("x86_Thread_features").contains("shstk"),
        seccomp_mode: line("Seccomp").parse().unwrap_or(0),
    })
}

/// Process id as the process sees itself; the same number if it cannot be told.
#[must_use]
pub fn inner_pid(pid: u32) -> u32 {
    status(pid).map_or(pid, |status| status.inner_pid)
}

/// The threads that exist and have not ended.
pub(crate) fn threads(pid: u32) -> Result<Vec<u32>> {
    let folder = fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| Error::NoSuchProcess { pid })?;
    let ids = folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(ids.collect())
}

/// State letter of a thread; `None` if it is gone.
pub(crate) fn thread_state(pid: u32, tid: u32) -> Option<char> {
    let stat = fs::read(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    // `tid (name) state …`: the name may hold anything, so the state is behind the last parenthesis.
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(end + 2).map(|&byte| char::from(byte))
}

/// The thread that traces a thread, as far as that can be known.
pub(crate) fn tracer(pid: u32, tid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("TracerPid:")?.trim().parse().ok())
}

/// A thread's seccomp mode (0: none, 1: strict, 2: filters) and how many filters it has (0 before Linux 5.9); `None` if it is gone.
pub(crate) fn seccomp(pid: u32, tid: u32) -> Option<(u32, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some((number("Seccomp:").unwrap_or(0), number("Seccomp_filters:").unwrap_or(0)))
}

/// Whether a thread is one of this process.
pub(crate) fn is_own_thread(tid: u32) -> bool {
    fs::metadata(format!("/proc/self/task/{tid}")).is_ok()
}

/// Refuses what cannot be attached to, with the reason. `is_held`: it is this process that traces it.
pub(crate) fn check(pid: u32, is_held: bool) -> Result<()> {
    /// For a thread of ours that has been at it to end.
    const ENDS_WITHIN: Duration = Duration::from_millis(200);
    let begin = Instant::now();
    let status = loop {
        let status = status(pid).ok_or(Error::NoSuchProcess { pid })?;
        if is_held || !is_own_thread(status.tracer_pid) || begin.elapsed() > ENDS_WITHIN {
            break status;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    if status.state.starts_with(['Z', 'X']) {
        return Err(Error::Zombie { pid });
    }
    // The kernel names the thread that traces.
    if status.tracer_pid != 0 && !(is_held && is_own_thread(status.tracer_pid)) {
        let tracer_pid = status.tracer_pid;
        let name = fs::read_to_string(format!("/proc/{tracer_pid}/comm")).unwrap_or_default();
        return Err(Error::AlreadyTraced { pid, tracer_pid, tracer_name: name.trim().to_owned() });
    }
    let unsupported = |reason| Err(Error::Unsupported { pid, reason });
    if pid == std::process::id() {
        return unsupported("it is heapr itself");
    }
    let mut head = [0; 20];
    let executable = format!("/proc/{}/exe", telling_thread(pid));
    match fs::File::open(&executable) {
        Ok(mut file) => std::io::Read::read_exact(&mut file, &mut head).unwrap_or_default(),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(Error::NotPermitted { pid, reason: why_not_permitted(pid, &status) });
        }
        Err(_) if fs::read_link(&executable).is_err() => {
            return unsupported("it is a thread of the kernel");
        }
        Err(_) => {}
    }
    if head.starts_with(b"\x7fELF\x01") {
        return unsupported("it is a 32-bit program");
    }
    if head.starts_with(b"\x7fELF") && head.get(18..20) != Some(&[62, 0]) {
        return unsupported("it is a program for another processor");
    }
    if status.has_shadow_stack {
        return unsupported("it runs with a shadow stack (start it without, in GLIBC_TUNABLES)");
    }
    if status.seccomp_mode == 1 {
        return unsupported("it has forbidden itself all system calls (seccomp in strict mode)");
    }
    Ok(())
}

/// For an error of the kernel's: which setting, capability or user is in the way.
pub(crate) fn not_permitted(pid: u32) -> Error {
    match status(pid) {
        None => Error::NoSuchProcess { pid },
        Some(status) => Error::NotPermitted { pid, reason: why_not_permitted(pid, &status) },
    }
}

fn why_not_permitted(pid: u32, status: &Status) -> String {
    const CAP_SYS_PTRACE: u32 = 19;
    let own = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let own_line = |name: &str| {
        let found = own.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        found.map_or("", str::trim)
    };
    let capabilities = u64::from_str_radix(own_line("CapEff"), 16).unwrap_or(0);
    if capabilities >> CAP_SYS_PTRACE & 1 != 0 {
        return "although this process has CAP_SYS_PTRACE: a security module, or another user namespace, forbids it"
            .to_owned();
    }
    let uid_of = |line: &str| line.split_ascii_whitespace().next().unwrap_or("?").to_owned();
    if uid_of(&status.uids) != uid_of(own_line("Uid")) {
        return format!(
            "{} runs as user {}, this is user {}: use sudo, or run heapr as that user",
            status.name,
            uid_of(&status.uids),
            uid_of(own_line("Uid"))
        );
    }
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "1" => format!(
            "kernel.yama.ptrace_scope is 1, which allows only children to be traced: use sudo, or sysctl kernel.yama.ptrace_scope=0, or start {} with heapr run",
            status.name
        ),
        "2" => "kernel.yama.ptrace_scope is 2, which allows it to CAP_SYS_PTRACE only: use sudo".to_owned(),
        "3" => "kernel.yama.ptrace_scope is 3, which forbids all tracing until the next boot".to_owned(),
        _ => format!(
            "process {pid} has made itself untraceable (prctl PR_SET_DUMPABLE, or a program with capabilities): use sudo"
        ),
    }
}
