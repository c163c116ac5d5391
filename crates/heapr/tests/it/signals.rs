//! Signals and statuses pass through heapr as if it did not exist.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use heapr_testkit::{Outcome, run};

use crate::recording::{HEAPR, heapr};

/// Runs a shell script under heapr; its `$PPID` is heapr.
fn run_script(options: &[&str], script: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    // The caller of the tests may ignore signals, as `nohup` does; heapr would then leave them
    // ignored.
    let mut command = Command::new("env");
    command
        .args(["--default-signal", HEAPR, "run"])
        .args(options)
        .args(["-o", "t.heapr", "--", "sh", "-c", script])
        .current_dir(folder.path());
    run(&mut command)
}

#[test]
fn signals_sent_to_heapr_reach_the_program() {
    for signal in ["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "ALRM", "WINCH"] {
        let script = format!(
            "trap 'echo got {signal}; exit 5' {signal}; kill -{signal} $PPID; while :; do sleep 0.02; done"
        );
        let outcome = run_script(&["--quiet"], &script);
        let seen = (outcome.status, outcome.stdout.as_str(), outcome.stderr.as_str());
        assert_eq!(seen, (5, format!("got {signal}\n").as_str(), ""));
    }
}

#[test]
fn a_program_that_a_signal_killed_is_named_so_and_its_status_is_that_of_a_shell() {
    let outcome = run_script(&[], "kill -KILL $$");
    assert_eq!(outcome.status, 128 + 9, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("killed by signal 9"), "{}", outcome.stderr);
}

#[test]
fn heapr_ends_by_the_signal_that_the_program_ended_by() {
    let folder = tempfile::tempdir().unwrap();
    for (name, number) in [("INT", 2), ("QUIT", 3), ("SEGV", 11), ("TERM", 15), ("KILL", 9)] {
        let mut command = Command::new("env");
        command.args(["--default-signal", HEAPR, "run", "-q", "-f", "-o", "t.heapr", "--", "sh", "-c"]);
        command.arg(format!("ulimit -c 0; kill -{name} $$")).current_dir(folder.path());
        let status = command.stdin(std::process::Stdio::null()).status().unwrap();
        assert_eq!(status.signal(), Some(number), "{name}: {status:?}");
        let left: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["t.heapr"], "{name}");
    }
}

#[test]
fn the_program_starts_with_the_signals_it_would_have_without_heapr() {
    const SHOW: &str = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status";
    let mut bare = Command::new("env");
    bare.args(["--default-signal", "sh", "-c", SHOW]);
    let bare = run(&mut bare);
    let outcome = run_script(&["--quiet"], SHOW);
    assert!(bare.stdout.contains("SigIgn"), "{}", bare.stdout);
    assert_eq!((outcome.status, outcome.stdout), (0, bare.stdout));
}

#[test]
fn signals_that_are_ignored_stay_ignored_in_the_program() {
    const SHOW: &str = "grep ^SigIgn /proc/self/status";
    let folder = tempfile::tempdir().unwrap();
    // The caller of the tests may ignore other signals, as a shell does for background jobs.
    let mut command = Command::new("env");
    let script = format!("trap '' HUP INT USR1 PIPE; exec {HEAPR} run --quiet -o t.heapr -- {SHOW}");
    command.args(["--default-signal", "sh", "-c", &script]).current_dir(folder.path());
    let outcome = run(&mut command);
    let ignored = outcome.stdout.trim().strip_prefix("SigIgn:").map(str::trim).unwrap_or_default();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    // Signals 1, 2, 10 and 13, and no other below 32. Two above are ignored by some ways to start a
    // program.
    assert_eq!((outcome.status, ignored & 0x7fff_ffff), (0, 0x1203), "{}", outcome.stderr);
}

#[test]
fn children_that_outlive_the_program_are_recorded_to_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let script = "(sleep 0.8; ls / >/dev/null; echo last) & echo first";
    let outcome = run(&mut heapr(folder.path(), &["run", "-o", "t.heapr", "--", "sh", "-c", script]));
    assert_eq!((outcome.status, outcome.stdout.as_str()), (0, "first\nlast\n"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("children still run"), "{}", outcome.stderr);
    let info = run(&mut heapr(folder.path(), &["info", "t.heapr", "--format", "json"])).json();
    let programs: Vec<_> = info["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| process["executable"].to_string())
        .collect();
    assert!(programs.iter().any(|program| program.ends_with("/ls\"")), "{programs:?}");
}

#[test]
fn a_signal_ends_the_wait_for_children_that_outlive_the_program() {
    for signal in ["INT", "TERM", "HUP"] {
        // The signal comes when the program has ended; its child outlives heapr, too.
        let script = format!(
            "(while kill -0 $$; do sleep 0.02; done 2>/dev/null; kill -{signal} $PPID; exec sleep 1000) & \
             echo $!; exit 6"
        );
        let outcome = run_script(&["--quiet"], &script);
        assert_eq!((outcome.status, outcome.stderr.as_str()), (6, ""));
        let child = outcome.stdout.trim();
        assert!(Command::new("kill").arg(child).status().unwrap().success(), "{signal}: {child} has ended");
    }
}
