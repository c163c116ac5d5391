//! Checks of what `heapr watch` needs: groups that count memory, notices, the kernel's log, exit
//! statuses.

use std::process::{Command, Stdio};

use heapr_incident::{KernelLog, Notices};
use heapr_proc::GroupFolder;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::check::Check;

/// Runs all checks.
pub(super) fn checks() -> Vec<Check> {
    vec![groups(), kernel_log(), exit_statuses()]
}

/// Checks that groups count memory and send notices. Registering a notice changes nothing else.
fn groups() -> Check {
    let topic = "watching groups";
    let roots = GroupFolder::roots();
    let Some(root) = roots.first() else {
        let advice = "heapr watch then knows processes alone, and no limit; mount a hierarchy with the memory controller";
        return Check::limited(topic, "no control group counts memory", advice);
    };
    let version = if root.is_v2() { 2 } else { 1 };
    let group = GroupFolder::of_process(std::process::id()).filter(|group| !group.is_root());
    let Some(group) = group.or_else(|| root.below().into_iter().find(GroupFolder::exists)) else {
        return Check::ok(topic, format!("version {version}; there is no group to ask for notices"));
    };
    let notices = Notices::of(&group, &[]);
    match notices.refused.first() {
        None => Check::ok(topic, format!("version {version} counts memory and sends notices")),
        Some(refused) => Check::limited(
            topic,
            format!("version {version} counts memory; no notice: {refused}"),
            "run heapr watch as root: without notices a fast climb is seen late",
        ),
    }
}

fn kernel_log() -> Check {
    let topic = "kernel's log";
    match KernelLog::open(false) {
        Ok(_) => Check::ok(topic, "/dev/kmsg can be read: kills are told by the kernel's own record"),
        Err(error) => Check::limited(
            topic,
            format!("/dev/kmsg: {error}"),
            "run heapr watch as root, or with CAP_SYSLOG: else kills are told by counters of the groups",
        ),
    }
}

/// Checks whether the kernel tells the exit status of a process whose parent has waited for it.
fn exit_statuses() -> Check {
    let topic = "exit statuses";
    let advice = "the signal that ended a process may be unknown where its parent is quick to ask for it";
    let unknown = || Check::limited(topic, "the kernel tells none by a pidfd (Linux 6.15 does)", advice);
    let child = Command::new("sh").args(["-c", "read line"]).stdin(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return unknown() };
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let life = number.and_then(|number| pidfd_open(number, PidfdFlags::empty()).ok());
    drop(child.stdin.take());
    let _ = child.wait();
    match life.and_then(heapr_inject::exit_status) {
        Some(_) => Check::ok(topic, "by pidfd, also of processes that are no children"),
        None => unknown(),
    }
}
