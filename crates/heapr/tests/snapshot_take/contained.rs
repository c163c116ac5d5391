//! A process in a container: other process ids, another network, another loopback.

use std::process::Command;

use crate::node_server::{Program, SERVER, has_node, ids_of};

/// The process that has the container's Node in it: `unshare` is its parent.
pub(crate) fn child_of(parent: u32) -> u32 {
    heapr_testkit::wait_until("it has a child", || {
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
        children.split_whitespace().next().map(|child| child.parse().unwrap())
    })
}

#[test]
fn a_process_in_a_container_is_reached_through_its_own_network() {
    if !has_node() {
        return;
    }
    const UNSHARE: [&str; 6] = ["--net", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc"];
    let may = Command::new("unshare")
        .args(UNSHARE)
        .arg("true")
        .output()
        .is_ok_and(|output| output.status.success());
    if !may || Command::new("ip").arg("-V").output().is_err() {
        heapr_testkit::cannot_run_here(
            "unshare may not make a container here, or there is no ip to give it a loopback",
        );
        return;
    }
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args(["sh", "-c"]);
    command.arg("ip link set lo up; exec node --heapsnapshot-signal=SIGUSR2 app.js").env("OBJECTS", "500");
    let container = Program::start(command, SERVER);
    let pid = child_of(container.pid()).to_string();
    let by_port = container.heapr(&["snapshot", "take", &pid, "-q"]);
    assert_eq!((by_port.status, by_port.stderr.as_str()), (Some(0), ""));
    let by_signal = container.heapr(&["snapshot", "take", "--signal", "USR2", &pid, "-q"]);
    assert_eq!((by_signal.status, by_signal.stderr.as_str()), (Some(0), ""));
    for outcome in [by_port, by_signal] {
        let path = container.folder.path().join(outcome.stdout.trim_end());
        assert_eq!(ids_of(&path, "Thing").len(), 500);
    }
    let process = heapr_inspector::Process::examine(pid.parse().unwrap()).unwrap();
    assert!(process.is_in_other_network && process.inner_pid != process.pid);
    assert_eq!(process.listeners().unwrap().len(), 1);
}
