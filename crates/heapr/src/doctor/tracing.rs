//! Checks of what recording, attaching and watching need: processor, kernel, C library, rights.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use heapr_glibc_heap::{Error, Plan, Version, walk};
use heapr_inject::ExecWatch;
use heapr_inject::{StoppedProcess, stand_still};
use heapr_known::machine::HERE;
use heapr_proc::machine;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use rustix::thread::CapabilitySet;

use super::check::{Check, State};

/// Runs all checks of tracing.
pub(super) fn checks() -> Vec<Check> {
    vec![
        processor(),
        kernel(),
        clock(),
        shared_buffers(),
        descriptors(),
        process_list(),
        attaching(),
        rundown(),
        exec_watch(),
        control_groups(),
    ]
}

fn processor() -> Check {
    let machine = rustix::system::uname().machine().to_string_lossy().into_owned();
    if machine == HERE.kernel_name {
        return Check::ok("processor", machine);
    }
    let kernel_name = HERE.kernel_name;
    let limit = format!("native heaps are recorded on {kernel_name}; V8 snapshots and reports work");
    Check::no("processor", machine, limit)
}

fn kernel() -> Check {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    match heapr_session::kernel_version() {
        // pidfd_getfd exists since Linux 5.6.
        Some(version) if version >= (5, 6) => Check::ok("kernel", release),
        Some(_) => Check::limited("kernel", release, "attaching needs Linux 5.6 or later; heapr run works"),
        None => Check::limited(
            "kernel",
            release,
            "its version cannot be read; Linux 5.6 or later is needed to attach",
        ),
    }
}

fn clock() -> Check {
    let (is_invariant, source) = (machine::has_invariant_counter(), machine::kernel_clock());
    let found = format!(
        "{} time-stamp counter, the kernel uses {}",
        if is_invariant { "invariant" } else { "no invariant" },
        if source.is_empty() { "an unknown clock" } else { &source }
    );
    if is_invariant && machine::is_kept_by_counter() {
        return Check::ok("clock", found);
    }
    let advice = "times are taken from the kernel's clock, some 20 ns more for each event; nothing is lost";
    Check::limited("clock", found, advice)
}

fn shared_buffers() -> Check {
    match rustix::fs::memfd_create("heapr-doctor", rustix::fs::MemfdFlags::ALLOW_SEALING) {
        Ok(_) => Check::ok("shared buffers", "memfd_create with seals"),
        Err(error) => Check::no(
            "shared buffers",
            format!("memfd_create: {error}"),
            "allow memfd_create in the seccomp filter of this container",
        ),
    }
}

fn descriptors() -> Check {
    let topic = "descriptor passing";
    let own = || {
        let pidfd = pidfd_open(getpid(), PidfdFlags::empty())?;
        let file = rustix::fs::memfd_create("heapr-doctor", rustix::fs::MemfdFlags::CLOEXEC)?;
        let number = std::os::fd::AsRawFd::as_raw_fd(&file);
        pidfd_getfd(&pidfd, number, PidfdGetfdFlags::empty())
    };
    match own() {
        Ok(_) => Check::ok(topic, "pidfd_getfd"),
        Err(error) => Check::no(
            topic,
            format!("pidfd_getfd: {error}"),
            "attaching needs it: Linux 5.6, and pidfd_getfd allowed in the seccomp filter of this container; heapr run works",
        ),
    }
}

fn capabilities() -> CapabilitySet {
    rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective)
}

fn attaching() -> Check {
    let topic = "attaching";
    let may_trace_all = capabilities().contains(CapabilitySet::SYS_PTRACE);
    let rights = match (may_trace_all, is_in_initial_user_namespace()) {
        (true, true) => Rights::All,
        (true, false) => Rights::Namespace,
        (false, _) => Rights::User(rustix::process::geteuid().as_raw()),
    };
    let check = attaching_with(topic, &machine::ptrace_scope(), rights);
    if check.state == State::No {
        return check;
    }
    match refusal_of_a_child() {
        Some(refusal) => Check::no(
            topic,
            format!("not even a child may be traced: {refusal}"),
            "allow ptrace in the seccomp filter or security module of this container; heapr run works as it is",
        ),
        None => check,
    }
}

/// Tries to attach to a child. Returns the reason if that is not permitted.
fn refusal_of_a_child() -> Option<String> {
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().ok()?;
    let outcome = stand_still(child.id(), &mut |_| {});
    let _ = child.kill();
    let _ = child.wait();
    match outcome {
        Err(heapr_inject::Error::NotPermitted { reason, .. }) => Some(reason),
        _ => None,
    }
}

/// Processes that heapr may trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rights {
    /// All processes.
    All,
    /// All processes of its user namespace.
    Namespace,
    /// The processes of one user.
    User(u32),
}

fn attaching_with(topic: &'static str, scope: &str, rights: Rights) -> Check {
    let lower = "sysctl kernel.yama.ptrace_scope=0, or run heapr as root; heapr run works as it is";
    match (scope, rights) {
        ("3", _) => Check::no(
            topic,
            "ptrace_scope is 3: nobody may attach until the next boot",
            "set kernel.yama.ptrace_scope below 3 in sysctl.d and boot; heapr run works as it is",
        ),
        (_, Rights::All) => Check::ok(topic, "all processes (CAP_SYS_PTRACE)"),
        (_, Rights::Namespace) => Check::limited(
            topic,
            "processes of this user namespace (CAP_SYS_PTRACE)",
            "run heapr outside of it for others",
        ),
        ("2", _) => Check::no(topic, "ptrace_scope is 2: only root may attach", lower),
        ("1", _) => Check::limited(topic, "ptrace_scope is 1: only own children can be attached to", lower),
        (_, Rights::User(user)) => Check::limited(
            topic,
            format!("processes of user {user}"),
            "run heapr as root for processes of other users",
        ),
    }
}

/// Checks by a heap walk of a program at rest that its C library is known and its memory can be
/// read.
fn rundown() -> Check {
    let topic = "blocks before attaching";
    let advice = "attaching works; blocks allocated before are not listed, and their frees are not errors";
    match version_at_rest().map_or_else(|| heap_version(std::process::id()), Ok) {
        Ok(version) => Check::ok(topic, format!("glibc {version}; its heap can be read")),
        // heapr's own heap changes during the walk, so that damage is expected; it is enough that
        // the heap was found.
        Err(Error::DamagedMainArena { .. }) => Check::ok(topic, "glibc; its heap was found"),
        Err(
            error @ (Error::UnsupportedVersion { .. }
            | Error::NoMainArena { .. }
            | Error::UnknownVersion { .. }),
        ) => Check::limited(
            topic,
            error.to_string(),
            format!("glibc {} to {} is known; {advice}", Version::OLDEST, Version::NEWEST),
        ),
        Err(error) => Check::limited(topic, error.to_string(), advice),
    }
}

fn heap_version(pid: u32) -> Result<Version, Error> {
    let memory = StoppedProcess::of(pid);
    let plan = Plan::make(&memory)?;
    walk(&plan, &memory, &[], &mut plan.room(&memory)).map(|_| plan.version())
}

/// Returns the glibc version of a child that waits for input. heapr changes its own heap during a
/// walk, which therefore often fails. It is the fallback if no child can be started, or if the
/// child has another C library.
fn version_at_rest() -> Option<Version> {
    /// Time within which the child's loader has finished.
    const STARTS_WITHIN: Duration = Duration::from_millis(50);
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().ok()?;
    std::thread::sleep(STARTS_WITHIN);
    let version = heap_version(child.id()).ok();
    let _ = child.kill();
    let _ = child.wait();
    version
}

/// Tries the watch itself, and ends it before an exec is held.
fn exec_watch() -> Check {
    let topic = "flagged programs";
    let without = "they are looked for five times a second and attached to";
    let shell = "run heapr as root, or start them from a shell with `heapr config shell`; heapr run and heapr start \
                 -- PROGRAM trace from the first instruction anyhow";
    let tried = ExecWatch::in_thread(&[], |watch| watch.and_then(|watch| watch.watch(Path::new("/"))))
        .and_then(|watch| {
            watch.join().unwrap_or_else(|_| Err(std::io::Error::other("its thread has failed")))
        });
    match tried {
        Ok(()) if heapr_session::kernel_version().is_some_and(|version| version < (6, 8)) => Check::limited(
            topic,
            format!("fanotify holds each exec, but Linux before 6.8 lets nobody trace it then: {without}"),
            shell,
        ),
        Ok(()) => Check::ok(topic, "traced from the first instruction (fanotify holds each exec)"),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::PERM.raw_os_error()) => {
            let found = if is_in_initial_user_namespace() {
                format!("holding each exec needs CAP_SYS_ADMIN: {without}")
            } else {
                format!("holding each exec needs root outside of all user namespaces: {without}")
            };
            Check::limited(topic, found, shell)
        }
        Err(error) => Check::limited(
            topic,
            format!("the kernel cannot hold execs (fanotify: {error}): {without}"),
            "a kernel with CONFIG_FANOTIFY_ACCESS_PERMISSIONS, or a shell with `heapr config shell`",
        ),
    }
}

/// Whether heapr runs in the first user namespace: only there every id maps to itself.
fn is_in_initial_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

/// Checks that /proc shows the pid namespace of this process.
fn process_list() -> Check {
    let topic = "process list";
    match fs::read_link("/proc/self") {
        Ok(_) if heapr_proc::own_pid() == std::process::id() => {
            Check::ok(topic, format!("/proc, {} processes", heapr_proc::pids().count()))
        }
        Ok(_) => Check::no(
            topic,
            "/proc shows the processes of another namespace, under other numbers",
            "mount this namespace's own (mount -t proc proc /proc, unshare --mount-proc): all but heapr run needs it",
        ),
        Err(_) => Check::no(topic, "there is no /proc", "mount it: mount -t proc proc /proc"),
    }
}

fn control_groups() -> Check {
    let topic = "control groups";
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    if fs::metadata("/sys/fs/cgroup/cgroup.controllers").is_ok() {
        return Check::ok(topic, "version 2");
    }
    if own.contains(":name=systemd:") {
        return Check::ok(topic, "version 1 with systemd's hierarchy");
    }
    let advice = "flags by --unit, --flatpak, --snap and --cgroup need a hierarchy; --name and --pid work";
    Check::limited(topic, "no hierarchy is mounted", advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ptrace_scope_says_what_it_allows() {
        let state = |scope, rights| attaching_with("attaching", scope, rights).state;
        for scope in ["", "0", "1", "2"] {
            assert_eq!(state(scope, Rights::All), State::Ok);
            assert_eq!(state(scope, Rights::Namespace), State::Limited);
        }
        for rights in [Rights::All, Rights::Namespace, Rights::User(1000)] {
            assert_eq!(state("3", rights), State::No);
        }
        assert_eq!(state("0", Rights::User(1000)), State::Limited);
        assert_eq!(state("1", Rights::User(1000)), State::Limited);
        assert_eq!(state("2", Rights::User(1000)), State::No);
        assert_eq!(state("", Rights::User(1000)), State::Limited);
    }
}
