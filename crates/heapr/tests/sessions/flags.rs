//! Flagged programs: every instance is recorded from its first instruction, by whatever it is
//! started.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::stage::Stage;

/// Events of one run of `flagged.c`, and allocations.
const EVENTS: u64 = 1510;
const ALLOCATIONS: u64 = 1010;

/// Stage with a flag on a program name that is unique to the test.
struct Flagged {
    stage: Stage,
    program: PathBuf,
}

impl Flagged {
    fn new(name: &str) -> Self {
        let stage = Stage::new();
        let program = stage.path(name);
        build(&program);
        Self { stage, program }
    }

    fn enable(&self, target: &[&str]) {
        self.stage.heapr(&[&["config", "enable", "heap"], target].concat()).ok();
    }

    fn start(&self) {
        self.stage.heapr(&["start", "flags", "-q", "-o", "flags.heapr", "--flagged"]).ok();
    }

    /// Whether execs can be held on this machine.
    fn is_exec_held(&self) -> bool {
        let status = self.stage.status("flags");
        let method = status["flag_watch"].as_str().unwrap();
        let is_held = method.contains("each exec is held");
        if !is_held {
            heapr_testkit::cannot_run_here(format_args!("{method}"));
        }
        is_held
    }

    fn shell(&self, script: &str) {
        let mut command = Command::new("sh");
        command.args(["-c", script, &self.program.to_string_lossy()]).current_dir(self.stage.path(""));
        let outcome = heapr_testkit::run(&mut command);
        assert_eq!(outcome.status, 0, "{script}: {}{}", outcome.stdout, outcome.stderr);
    }

    /// Stops the session, and returns allocations in the program's function over all its processes.
    fn stop(&self) -> Counts {
        self.stage.heapr(&["stop", "flags", "-q"]).ok();
        self.counts("flags.heapr")
    }

    fn counts(&self, file: &str) -> Counts {
        let totals = self.stage.json(&["report", file, "--totals"])["totals"].clone();
        let info = self.stage.json(&["info", file]);
        let number = |value: &serde_json::Value| value.as_u64().unwrap_or_else(|| panic!("{totals} {info}"));
        Counts {
            processes: info["processes"].as_array().unwrap().len(),
            allocations: number(&totals["alloc_count"]),
            outstanding: number(&totals["outstanding_count"]),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    processes: usize,
    allocations: u64,
    outstanding: u64,
}

fn build(program: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions/flagged.c");
    let status = Command::new("gcc")
        .args(["-g", "-O1", "-fno-builtin", "-o"])
        .arg(program)
        .arg(source)
        .status()
        .unwrap();
    assert!(status.success());
    // Other users may start it too.
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn fifty_instances_from_a_shell_are_all_recorded_whole() {
    let flagged = Flagged::new("flagged-fifty");
    flagged.enable(&["--name", "flagged-fifty"]);
    let program = flagged.program.to_str().unwrap();
    flagged.stage.heapr(&["run", "-q", "-o", "run.heapr", program]).ok();
    let once = flagged.counts("run.heapr");
    assert_eq!((once.processes, once.allocations), (1, ALLOCATIONS));
    flagged.start();
    if !flagged.is_exec_held() {
        return;
    }
    flagged.shell(r#"for i in $(seq 50); do "$0" || exit; done"#);
    let status = flagged.stage.status("flags");
    assert_eq!(status["event_count"], 50 * EVENTS, "{status}");
    let all = flagged.stop();
    let expected =
        Counts { processes: 50, allocations: 50 * once.allocations, outstanding: 50 * once.outstanding };
    assert_eq!(all, expected);
}

#[test]
fn a_link_a_script_and_a_second_exec_are_recorded_whole() {
    let flagged = Flagged::new("flagged-linked");
    let link = flagged.stage.path("flagged-link");
    std::os::unix::fs::symlink(&flagged.program, &link).unwrap();
    let script = flagged.stage.path("flagged-script");
    fs::write(&script, format!("#!{}\n", flagged.program.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    flagged.enable(&["--name", "flagged-link", "--name", "flagged-script"]);
    flagged.start();
    if !flagged.is_exec_held() {
        return;
    }
    // The program's own name is not flagged.
    flagged.shell(r#""$0" && ./flagged-link && ./flagged-script && exec ./flagged-link"#);
    let counts = flagged.stop();
    assert_eq!((counts.processes, counts.allocations), (3, 3 * ALLOCATIONS));
}

#[test]
fn what_is_not_flagged_is_not_touched() {
    let flagged = Flagged::new("flagged-other");
    flagged.enable(&["--name", "flagged-nobody"]);
    flagged.start();
    flagged.shell(r#"for i in $(seq 5); do "$0" || exit; done"#);
    let counts = flagged.stop();
    assert_eq!((counts.processes, counts.allocations), (0, 0));
}

#[test]
fn a_flag_that_is_taken_away_holds_no_more_and_a_new_one_at_once() {
    let flagged = Flagged::new("flagged-onoff");
    flagged.start();
    if !flagged.is_exec_held() {
        return;
    }
    flagged.shell(r#""$0""#);
    flagged.enable(&["--name", "flagged-onoff"]);
    flagged.shell(r#""$0""#);
    flagged.stage.heapr(&["config", "disable", "heap", "--name", "flagged-onoff"]).ok();
    flagged.shell(r#""$0""#);
    let counts = flagged.stop();
    assert_eq!((counts.processes, counts.allocations), (1, ALLOCATIONS));
}

#[test]
fn programs_of_other_users_and_in_other_namespaces_are_recorded_from_their_own_code_on() {
    let flagged = Flagged::new("flagged-other-user");
    // A folder that other users can enter.
    let folder = tempfile::Builder::new().prefix("heapr-flags").tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("flagged-other-user");
    fs::copy(&flagged.program, &program).unwrap();
    let program = program.to_str().unwrap();
    flagged.enable(&["--name", "flagged-other-user"]);
    flagged.start();
    if !flagged.is_exec_held() {
        return;
    }
    let ways = [
        format!("setpriv --reuid 65534 --regid 65534 --clear-groups {program}"),
        format!("unshare --mount --pid --fork --mount-proc {program}"),
        format!("unshare --user --map-root-user {program}"),
        format!("setpriv --bounding-set=-all --inh-caps=-all {program}"),
    ];
    for way in &ways {
        flagged.shell(way);
    }
    let status = flagged.stage.status("flags");
    let counts = flagged.stop();
    assert_eq!(counts.processes, ways.len(), "{status}");
    assert_eq!(counts.allocations, ways.len() as u64 * ALLOCATIONS, "{status}");
}

#[test]
fn each_flagged_program_is_recorded_also_where_children_are_not() {
    let flagged = Flagged::new("flagged-alone");
    flagged.enable(&["--name", "flagged-alone"]);
    flagged.stage.heapr(&["start", "flags", "-q", "-o", "flags.heapr", "--flagged", "--no-follow"]).ok();
    if !flagged.is_exec_held() {
        return;
    }
    flagged.shell(r#""$0" && "$0" && "$0""#);
    let counts = flagged.stop();
    assert_eq!((counts.processes, counts.allocations), (3, 3 * ALLOCATIONS));
}

#[test]
fn control_groups_choose_programs() {
    let Some(group) = ControlGroup::new("heapr-test-unit.service") else {
        return heapr_testkit::cannot_run_here("no control group can be made");
    };
    for target in [["--unit", "heapr-test-unit"], ["--cgroup", &group.path]] {
        let flagged = Flagged::new("grouped");
        flagged.enable(&target);
        flagged.start();
        if !flagged.is_exec_held() {
            return;
        }
        flagged.shell(r#""$0""#);
        flagged.shell(&format!("echo $$ > {}/cgroup.procs; exec \"$0\"", group.folder.display()));
        let counts = flagged.stop();
        assert_eq!((counts.processes, counts.allocations), (1, ALLOCATIONS), "{target:?}");
    }
    for (target, name) in [
        (["--flatpak", "org.heapr.Test"], "app-flatpak-org.heapr.Test-4711.scope"),
        (["--snap", "heapr-test"], "snap.heapr-test.app-a1b2.scope"),
    ] {
        let group = ControlGroup::new(name).unwrap();
        let flagged = Flagged::new("grouped");
        flagged.enable(&target);
        flagged.start();
        flagged.shell(r#""$0""#);
        flagged.shell(&format!("echo $$ > {}/cgroup.procs; exec \"$0\"", group.folder.display()));
        let counts = flagged.stop();
        assert_eq!((counts.processes, counts.allocations), (1, ALLOCATIONS), "{target:?}");
    }
}

/// Control group of one test.
struct ControlGroup {
    folder: PathBuf,
    path: String,
}

impl ControlGroup {
    fn new(name: &str) -> Option<Self> {
        let roots = ["/sys/fs/cgroup/systemd", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
        roots.iter().find_map(|root| {
            let parent = Path::new(root).join(format!("heapr-test-{}", std::process::id()));
            let folder = parent.join(name);
            fs::create_dir_all(&folder).ok()?;
            let is_group = folder.join("cgroup.procs").exists();
            let path = format!("/{}", folder.strip_prefix(root).ok()?.display());
            is_group.then_some(Self { folder, path })
        })
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
        let _ = self.folder.parent().map(fs::remove_dir);
    }
}

#[test]
fn a_recorder_that_is_killed_leaves_no_exec_waiting() {
    let flagged = Flagged::new("flagged-killed");
    flagged.enable(&["--name", "flagged-killed"]);
    flagged.start();
    if !flagged.is_exec_held() {
        return;
    }
    for round in 0..10 {
        if round > 0 {
            flagged.stage.heapr(&["start", "flags", "-q", "-f", "-o", "flags.heapr", "--flagged"]).ok();
        }
        let recorder = flagged.stage.status("flags")["recorder_pid"].to_string();
        let mut children: Vec<_> = (0..4)
            .map(|_| {
                Command::new("sh")
                    .args(["-c", r#"for i in $(seq 40); do "$0" || exit 3; done"#])
                    .arg(&flagged.program)
                    .stdin(Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        std::thread::sleep(Duration::from_millis(15 + 7 * round));
        assert!(Command::new("kill").args(["-KILL", &recorder]).status().unwrap().success());
        let deadline = Instant::now() + heapr_testkit::LIMIT;
        for child in &mut children {
            let status = loop {
                match child.try_wait().unwrap() {
                    Some(status) => break status,
                    None if Instant::now() > deadline => {
                        let _ = child.kill();
                        panic!("round {round}: a program waits for a dead recorder");
                    }
                    None => std::thread::sleep(Duration::from_millis(5)),
                }
            };
            assert_eq!(status.code(), Some(0), "round {round}");
        }
    }
}

/// Without root: programs of a shell that has evaluated `heapr config shell`, each from its first
/// instruction.
#[test]
fn the_programs_of_a_users_shell_are_recorded_whole() {
    const NOBODY: u32 = 65534;
    let folder = tempfile::Builder::new().prefix("heapr-shell").tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    if std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).is_err() {
        return heapr_testkit::not_run("only root can be another user");
    }
    let program = folder.path().join("flagged-shell");
    build(&program);
    let copy = Command::new("cp").arg(crate::stage::HEAPR).arg(folder.path().join("heapr")).status().unwrap();
    assert!(copy.success());
    let script = r#"
        ./heapr config enable heap --name flagged-shell --name flagged-as &&
        eval "$(./heapr config shell)" && ./flagged-shell &&
        ./heapr start s -q -o s.heapr --flagged || exit 1
        for i in $(seq 10); do ./flagged-shell || exit 2; done
        ln -s flagged-shell flagged-as && ln -s flagged-shell other-name && (exec ./flagged-as) && sh -c 'exec ./flagged-as'
        /bin/true && /bin/ls > /dev/null || exit 3
        ./heapr status s && ./heapr stop s -q && ./flagged-shell || exit 4
        ls "$HEAPR_RUNTIME_DIR/heapr" > left || exit 5
        grep flagged left && exit 7
        ./heapr report s.heapr --totals --format json > report.json || exit 6
        eval "$(./heapr config shell --off)" && test -z "$LD_PRELOAD$HEAPR_FLAGGED"
    "#;
    let id = NOBODY.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "sh", "-c", script]);
    command.current_dir(folder.path()).env("HOME", folder.path());
    let private = folder.path().join("run");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&private, Some(NOBODY), Some(NOBODY)).unwrap();
    command.env("HEAPR_RUNTIME_DIR", &private).env("XDG_RUNTIME_DIR", &private);
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_CACHE_HOME");
    let outcome = heapr_testkit::run(&mut command);
    assert_eq!(outcome.status, 0, "{}{}", outcome.stdout, outcome.stderr);
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("report.json")).unwrap()).unwrap();
    assert_eq!(report["totals"]["alloc_count"], 12 * ALLOCATIONS, "{}{}", outcome.stdout, outcome.stderr);
}
