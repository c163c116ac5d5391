//! Process in a container: other process ids, another network, another loopback.

use std::process::Command;

use crate::node_server::{Program, SERVER, has_node, ids_of};

/// Returns the process with the container's Node: the child of `unshare`.
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
    assert_eq!((by_port.status, by_port.stderr.as_str()), (0, ""));
    let by_signal = container.heapr(&["snapshot", "take", "--signal", "USR2", &pid, "-q"]);
    assert_eq!((by_signal.status, by_signal.stderr.as_str()), (0, ""));
    for outcome in [by_port, by_signal] {
        let path = container.folder.path().join(outcome.stdout.trim_end());
        assert_eq!(ids_of(&path, "Thing").len(), 500);
    }
    let process = heapr_inspector::Process::examine(pid.parse().unwrap()).unwrap();
    assert!(process.is_in_other_network && process.inner_pid != process.pid);
    assert_eq!(process.listeners().unwrap().len(), 1);
}

/// Control group with a name in Docker's form.
struct DockersGroup {
    folder: std::path::PathBuf,
    id: String,
}

impl DockersGroup {
    fn new() -> Option<Self> {
        let id = format!("{:064x}", 0x3f2a_9c41_b7d0_u128 << 80 | u128::from(std::process::id()));
        let roots = ["/sys/fs/cgroup/systemd", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
        roots.iter().find_map(|root| {
            let folder = std::path::Path::new(root).join(format!("docker-{id}.scope"));
            std::fs::create_dir_all(&folder).ok()?;
            folder.join("cgroup.procs").exists().then(|| Self { folder, id: id.clone() })
        })
    }
}

impl Drop for DockersGroup {
    fn drop(&mut self) {
        heapr_testkit::wait_until("the group is empty", || std::fs::remove_dir(&self.folder).ok());
    }
}

#[test]
fn a_container_is_named_by_its_id() {
    if !has_node() {
        return;
    }
    let Some(group) = DockersGroup::new() else {
        heapr_testkit::cannot_run_here("control groups can't be made here");
        return;
    };
    let mut command = Command::new("sh");
    command.arg("-c").env("OBJECTS", "500");
    command.arg(format!("echo $$ > {}/cgroup.procs; node app.js & wait", group.folder.display()));
    let container = Program::start(command, SERVER);
    let outcome = container.heapr(&["snapshot", "take", "--container", &group.id[..30], "-q"]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    // The shell is in the container, too, and runs no JavaScript.
    assert_eq!(outcome.stdout.lines().count(), 1, "{outcome:?}");
    assert_eq!(ids_of(&container.folder.path().join(outcome.stdout.trim_end()), "Thing").len(), 500);
    let nothing = container.heapr(&["snapshot", "take", "--container", "feedbeef"]);
    assert_eq!(nothing.status, 2);
    assert!(nothing.stderr.contains("is in a container or pod \"feedbeef\""), "{nothing:?}");
    let _ = Command::new("kill").arg(child_of(container.pid()).to_string()).status();
    drop(container);
    drop(group);
}
