//! `heapr explain PID` under restrictions of heapr or of the process.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use heapr_testkit::{run, wait_until};

use crate::explained::{Waiting, assert_adds_up, bytes, explain};
use crate::header::Header;
use crate::recording::{HEAPR, command};
use crate::victim_build::{build, sources};

fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").unwrap().contains("Uid:\t0\t0")
}

fn kinds() -> std::path::PathBuf {
    build("resident/kinds.c", &Header::read(&sources().join("resident/kinds.c")), &["-O1".to_owned()])
}

#[test]
fn a_process_in_another_pid_namespace_is_told_like_any_other() {
    let works = Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        heapr_testkit::cannot_run_here("no namespace of process ids can be made");
        return;
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--mount-proc", "--kill-child"]).arg(kinds());
    let victim = Waiting::begin(unshare);
    let children = format!("/proc/{0}/task/{0}/children", victim.pid());
    let children = std::fs::read_to_string(children).unwrap();
    let pid: u32 = children.split_whitespace().next().unwrap().parse().unwrap();
    let answer = explain(pid, &[]);
    assert_adds_up(&answer, pid);
    let resident = &answer["resident"];
    assert!(bytes(resident, "thread_stacks", "bytes") >= victim.said["thread_stacks"], "{resident}");
    assert!(bytes(resident, "glibc_heap", "bytes") >= victim.said["glibc_heap"], "{resident}");
}

#[test]
fn ones_own_process_needs_no_root() {
    if !is_root() || Command::new("setpriv").arg("--version").output().is_err() {
        // Without root, every other test of this kind shows the case.
        heapr_testkit::cannot_run_here("only root can become another user, with setpriv");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    };
    open(folder.path());
    let copy = |from: &Path, name: &str| {
        let to = folder.path().join(name);
        std::fs::copy(from, &to).unwrap();
        open(&to);
        to
    };
    let as_nobody = |program: &Path| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(program);
        command
    };
    let victim = Waiting::begin(as_nobody(&copy(&kinds(), "kinds")));
    victim.stop();
    let mut heapr = as_nobody(&copy(Path::new(HEAPR), "heapr"));
    heapr.args(["explain", &victim.pid().to_string(), "--deep", "--format", "json"]);
    let outcome = run(&mut heapr);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let answer = serde_json::from_str(&outcome.stdout).unwrap();
    assert_adds_up(&answer, victim.pid());
    assert!(answer["resident"]["malloc"]["live_blocks"].as_u64() > Some(4000), "{answer}");
}

/// Child that is killed when the test ends.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_ends_while_it_is_looked_at_is_told_or_refused() {
    const ROUNDS: u32 = 12;
    let program = kinds();
    let folder = tempfile::tempdir().unwrap();
    for round in 0..ROUNDS {
        let victim = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut victim = Ends(victim);
        let mut heapr = command(&["explain", &victim.0.id().to_string(), "--deep"]);
        heapr.stdout(Stdio::piped()).stderr(Stdio::piped());
        let heapr = heapr.spawn().unwrap();
        let looks = format!("/proc/{}/io", heapr.id());
        // Each round lets heapr come further: the victim ends after this number of reads.
        wait_until("it has begun to read", || {
            let Ok(text) = std::fs::read_to_string(&looks) else { return Some(()) };
            let count = text.lines().find_map(|line| line.strip_prefix("syscr: "))?.parse::<u32>().ok()?;
            let has_ended = std::fs::read_to_string(format!("/proc/{}/cmdline", heapr.id()))
                .is_ok_and(|line| line.is_empty());
            (count >= 20 + round * 10 || has_ended).then_some(())
        });
        let _ = victim.0.kill();
        let outcome = heapr.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&outcome.stderr);
        assert!(matches!(outcome.status.code(), Some(0 | 2)), "round {round}: {:?} {error}", outcome.status);
        assert!(!error.contains("panicked"), "{error}");
        let text = String::from_utf8_lossy(&outcome.stdout);
        assert!(outcome.status.code() == Some(2) || text.contains("all of it:"), "{text}{error}");
    }
    drop(folder);
}

#[test]
fn reserved_huge_pages_stand_beside_the_resident_set() {
    let victim = Waiting::start("resident/reserved_pages.c", &[]);
    victim.stop();
    let answer = explain(victim.pid(), &[]);
    assert_adds_up(&answer, victim.pid());
    let Some(said) = victim.said.get("reserved") else {
        heapr_testkit::cannot_run_here("the machine has no huge pages of the reserved kind");
        return;
    };
    assert_eq!(answer["resident"]["beside"]["reserved_huge_bytes"].as_u64(), Some(*said), "{answer}");
}
