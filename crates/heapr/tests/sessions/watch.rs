//! Deaths of watched programs in control groups of little memory: who killed them, and what held
//! the memory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use heapr_testkit::{cannot_run_here, wait_until};
use serde_json::Value;

use crate::stage::Stage;
use crate::watch_group::{Group, LIMIT_BYTES};

/// Compiles a program that waits for the file `go`, and then runs `body`.
pub(crate) fn compiled(stage: &Stage, name: &str, functions: &str, body: &str) -> String {
    let source = stage.path(&format!("{name}.c"));
    let text = format!(
        "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n{functions}\n\
         int main(void) {{ while (access(\"go\", F_OK)) usleep(1000);\n{body}\nreturn 0; }}\n"
    );
    fs::write(&source, text).unwrap();
    let program = stage.argument(name);
    let mut compiler = Command::new("gcc");
    compiler.args(["-g", "-O1", "-fno-builtin", "-o", &program]).arg(&source);
    assert!(compiler.status().unwrap().success());
    program
}

/// Watch that runs until its processes have ended.
pub(crate) struct Watch {
    child: Child,
    said: PathBuf,
}

impl Watch {
    /// Starts a watch, and waits until it watches.
    pub(crate) fn start(stage: &Stage, words: &[&str]) -> Self {
        let said = stage.path("said");
        let mut command = stage.command(&["watch", "-o", "incidents", "--until-end"]);
        let child = command.args(words).stderr(File::create(&said).unwrap()).spawn().unwrap();
        let mut watch = Self { child, said };
        wait_until("heapr watches", || {
            let said = watch.said();
            assert!(watch.child.try_wait().unwrap().is_none(), "{said}");
            said.contains("heapr: watching").then_some(())
        });
        watch
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }

    /// Waits for the end, and returns the status.
    pub(crate) fn end(mut self) -> i32 {
        let status = wait_until("the watch ends", || self.child.try_wait().unwrap());
        let said = self.said();
        status.code().unwrap_or_else(|| panic!("{said}"))
    }
}

/// The only incident of a stage's folder.
pub(crate) fn incident(stage: &Stage) -> Value {
    let all = stage.json(&["incidents", "--folder", "incidents"]);
    let [one] = all["incidents"].as_array().unwrap().as_slice() else { panic!("{all:#}") };
    stage.json(&["incidents", &one["number"].to_string(), "--folder", "incidents"])
}

pub(crate) fn sentence(incident: &Value) -> &str {
    incident["sentences"][0].as_str().unwrap()
}

/// Runs a program in a group under a watch until it dies, and returns the incident.
fn death_of(stage: &Stage, group: &Group, words: &[&str]) -> Value {
    let mut child = group.start(stage, words);
    wait_until("the program is in its group", || group.has(child.id()).then_some(()));
    let watch = Watch::start(stage, &["--cgroup", &group.path]);
    File::create(stage.path("go")).unwrap();
    // Each kernel tells the status of a process until its parent has waited for it.
    assert_eq!(watch.end(), 1);
    child.wait().unwrap();
    incident(stage)
}

const EATER: &str = "__attribute__((noinline)) static void *remember_order(void) { return malloc(100000); }";
const EATS: &str = "for (;;) { memset(remember_order(), 1, 100000); usleep(2000); }";

#[test]
fn a_leak_that_meets_the_limit_of_its_group_is_told_with_its_function() {
    let Some(group) = Group::new("leak") else { return };
    let stage = Stage::new();
    let program = compiled(&stage, "eater", EATER, EATS);
    let incident = death_of(&stage, &group, &[&program]);
    assert_eq!(incident["cause"]["kind"], "kernel_group", "{incident:#}");
    assert_eq!(incident["cause"]["certainty"], "fact");
    assert_eq!(incident["cause"]["limit_bytes"], LIMIT_BYTES);
    assert_eq!(incident["ending"]["signal"], 9);
    let first = sentence(&incident);
    assert!(first.contains("was killed by the kernel for lack of memory"), "{first}");
    assert!(first.contains(&group.path) && first.contains("% of it in remember_order (eater.c:"), "{first}");
    let bytes = incident["holders"][0]["bytes"].as_u64().unwrap();
    assert!((LIMIT_BYTES / 2..LIMIT_BYTES * 2).contains(&bytes), "{incident:#}");
    // The list, the other forms, and the status.
    let list = stage.heapr(&["incidents", "--folder", "incidents", "--fail-on", "death"]);
    assert_eq!((list.status, list.stdout.lines().count()), (1, 1), "{}", list.stdout);
    let number = incident["number"].to_string();
    let page = stage.heapr(&["incidents", &number, "--folder", "incidents", "--format", "md"]).ok().stdout;
    assert!(page.starts_with("# Incident ") && page.contains("remember\\_order"), "{page}");
    let text = stage.heapr(&["incidents", &number, "--folder", "incidents"]).ok().stdout;
    assert!(text.starts_with(first), "{text}");
    // The copy of the recording says the same.
    let copy = stage.path("incidents").join(incident["recording"]["file"].as_str().unwrap());
    let totals = stage.json(&["report", &copy.to_string_lossy(), "--totals"]);
    assert!(totals["totals"]["outstanding_bytes"].as_u64().unwrap() > LIMIT_BYTES / 2, "{totals:#}");
}

#[test]
fn a_dictionary_of_python_that_meets_the_limit_is_told_with_its_function() {
    let Some(group) = Group::new("python") else { return };
    let stage = Stage::new();
    fs::write(
        stage.path("cache.py"),
        "import os, time\norders = {}\ndef remember(number):\n    orders[number] = 'x' * 100000 + str(number)\n\
         def main():\n    while not os.path.exists('go'): time.sleep(0.001)\n    number = 0\n    while True:\n\
         \x20       remember(number)\n        number += 1\n        time.sleep(0.002)\nmain()\n",
    )
    .unwrap();
    let incident = death_of(&stage, &group, &["python3", "cache.py"]);
    assert_eq!(incident["cause"]["kind"], "kernel_group", "{incident:#}");
    assert!(sentence(&incident).contains("% of it in remember (cache.py:4)"), "{}", sentence(&incident));
}

#[test]
fn files_of_tmpfs_that_meet_the_limit_are_told_as_no_heap() {
    let Some(group) = Group::new("tmpfs") else { return };
    if heapr_proc::mounts::mounts()
        .iter()
        .all(|mount| mount.point != Path::new("/dev/shm") || mount.filesystem != "tmpfs")
    {
        return cannot_run_here("/dev/shm is no tmpfs");
    }
    let stage = Stage::new();
    let file = format!("/dev/shm/heapr-test-{}", std::process::id());
    let writes = format!(
        "FILE *file = fopen(\"{file}\", \"w\"); static char page[65536];\n\
         for (;;) {{ fwrite(page, 1, sizeof page, file); fflush(file); usleep(1000); }}"
    );
    let program = compiled(&stage, "logger", "#include <stdio.h>", &writes);
    let incident = death_of(&stage, &group, &[&program]);
    let _ = fs::remove_file(&file);
    assert_eq!(incident["cause"]["kind"], "kernel_group", "{incident:#}");
    assert!(sentence(&incident).ends_with("% of it in tmpfs and shared memory."), "{}", sentence(&incident));
}

#[test]
fn a_kill_by_hand_is_told_as_a_kill_by_somebody() {
    let Some(group) = Group::new("kill") else { return };
    let stage = Stage::new();
    let body = "for (int i = 0; i < 200; i++) memset(remember_order(), 1, 100000);\n\
                symlink(\"x\", \"full\"); pause();";
    let program = compiled(&stage, "victim", EATER, body);
    let mut child = group.start(&stage, &[&program]);
    wait_until("the program is in its group", || group.has(child.id()).then_some(()));
    let watch = Watch::start(&stage, &["--pid", &child.id().to_string()]);
    File::create(stage.path("go")).unwrap();
    wait_until("the program has its memory", || stage.path("full").symlink_metadata().ok());
    child.kill().unwrap();
    assert_eq!(watch.end(), 1);
    child.wait().unwrap();
    let incident = incident(&stage);
    assert_eq!(incident["cause"]["kind"], "killed", "{incident:#}");
    assert!(sentence(&incident).contains("who sent it is unknown"), "{}", sentence(&incident));
    assert!(incident["holders"][0]["name"].as_str().unwrap().starts_with("remember_order "), "{incident:#}");
}

#[test]
fn of_two_processes_in_a_group_the_one_that_held_the_memory_is_named() {
    let Some(group) = Group::new("two") else { return };
    let stage = Stage::new();
    let eater = compiled(&stage, "eater", EATER, EATS);
    let small = compiled(&stage, "small", "", "pause();");
    let mut other = group.start(&stage, &[&small]);
    let mut child = group.start(&stage, &[&eater]);
    for pid in [other.id(), child.id()] {
        wait_until("the programs are in their group", || group.has(pid).then_some(()));
    }
    let watch = Watch::start(&stage, &["--cgroup", &group.path]);
    File::create(stage.path("go")).unwrap();
    child.wait().unwrap();
    // The kernel kills the larger one; the other ends when it is told to.
    wait_until("the incident is told", || watch.said().contains("was killed by the kernel").then_some(()));
    Command::new("kill").arg(other.id().to_string()).status().unwrap();
    other.wait().unwrap();
    assert_eq!(watch.end(), 1);
    let incident = incident(&stage);
    assert_eq!(incident["process"]["name"], "eater", "{incident:#}");
    let processes = incident["group"]["processes"].as_array().unwrap();
    let names: Vec<&str> = processes.iter().map(|process| process["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["eater", "small"], "{incident:#}");
    assert!(sentence(&incident).contains("% of it in remember_order (eater.c:"), "{}", sentence(&incident));
}

#[test]
fn workers_that_one_program_has_forked_at_once_are_recorded_each_by_itself() {
    let Some(group) = Group::new("workers") else { return };
    let stage = Stage::new();
    // The first statement is behind the wait for `go`: the workers exist before the watch.
    let functions = format!(
        "{EATER}\n__attribute__((constructor)) static void begin(void) {{ for (int i = 0; i < 3; i++) if (!fork()) break; }}"
    );
    let body = "for (int i = 0; i < 200; i++) memset(remember_order(), 1, 100000);\npause();";
    let program = compiled(&stage, "worker", &functions, body);
    let mut child = group.start(&stage, &[&program]);
    let pids = || {
        let text = fs::read_to_string(group.folder.join("cgroup.procs")).unwrap();
        Some(text.lines().map(str::to_owned).collect::<Vec<_>>()).filter(|pids| pids.len() == 4)
    };
    let pids = wait_until("all workers run", pids);
    let watch = Watch::start(&stage, &["--cgroup", &group.path]);
    File::create(stage.path("go")).unwrap();
    wait_until("each worker has its memory", || {
        let processes = stage.json(&["status"])["sessions"][0]["processes"].clone();
        let has_it = |process: &Value| process["live_bytes"].as_u64().is_some_and(|bytes| bytes > 10 << 20);
        (processes.as_array()?.iter().filter(|process| has_it(process)).count() == 4).then_some(())
    });
    for pid in pids.iter().rev() {
        Command::new("kill").arg(pid).status().unwrap();
    }
    child.wait().unwrap();
    assert_eq!(watch.end(), 0);
}

#[test]
fn an_end_in_order_is_no_incident() {
    let Some(group) = Group::new("order") else { return };
    let stage = Stage::new();
    let program = compiled(&stage, "quiet", EATER, "free(remember_order());");
    let mut child = group.start(&stage, &[&program]);
    wait_until("the program is in its group", || group.has(child.id()).then_some(()));
    let watch = Watch::start(&stage, &["--pid", &child.id().to_string()]);
    File::create(stage.path("go")).unwrap();
    // Its parent waits for it late: a zombie has its status on each kernel.
    assert_eq!(watch.end(), 0);
    child.wait().unwrap();
    let all = stage.json(&["incidents", "--folder", "incidents"]);
    assert_eq!(all["incidents"].as_array().unwrap().len(), 0, "{all:#}");
}

#[test]
fn a_death_after_those_of_watcher_and_recorder_is_told_by_the_next_watcher() {
    let Some(group) = Group::new("journal") else { return };
    let stage = Stage::new();
    let body = "for (int i = 0; i < 300; i++) memset(remember_order(), 1, 100000);\n\
                symlink(\"x\", \"full\"); while (access(\"more\", F_OK)) usleep(1000);\n";
    let program = compiled(&stage, "eater", EATER, &format!("{body}{EATS}"));
    let mut child = group.start(&stage, &[&program]);
    wait_until("the program is in its group", || group.has(child.id()).then_some(()));
    let mut watch = Watch::start(&stage, &["--pid", &child.id().to_string()]);
    File::create(stage.path("go")).unwrap();
    wait_until("the program has its memory", || stage.path("full").symlink_metadata().ok());
    // The file is complete up to its last second: wait until it has the blocks.
    wait_until("the recording has the blocks", || {
        let live = stage.json(&["status"])["sessions"][0]["live_bytes"].as_u64()?;
        (live > 20 << 20).then_some(())
    });
    let session = stage.json(&["status"])["sessions"][0].clone();
    let _ = stage.heapr(&["update", session["name"].as_str().unwrap(), "--flush"]).ok();
    let recorder = session["recorder_pid"].as_u64().unwrap();
    // The watcher first: it would start another recorder.
    watch.kill();
    Command::new("kill").args(["-KILL", &recorder.to_string()]).status().unwrap();
    File::create(stage.path("more")).unwrap();
    child.wait().unwrap();
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    let next = Watch::start(&stage, &["--pid", &other.id().to_string()]);
    Command::new("kill").arg(other.id().to_string()).status().unwrap();
    other.wait().unwrap();
    assert_eq!(next.end(), 0);
    let incident = incident(&stage);
    assert_eq!(incident["process"]["name"], "eater", "{incident:#}");
    assert_eq!(incident["cause"]["kind"], "kernel_group", "{incident:#}");
    assert!(sentence(&incident).contains(" between "), "{}", sentence(&incident));
    assert!(incident["holders"][0]["name"].as_str().unwrap().starts_with("remember_order "), "{incident:#}");
}

#[test]
fn a_watcher_that_hands_over_leaves_its_recorder_and_the_deaths_to_the_next() {
    let stage = Stage::new();
    let program = compiled(&stage, "victim", EATER, "remember_order(); pause();");
    let mut child = Command::new(&program).current_dir(stage.path("")).spawn().unwrap();
    let words = ["--pid", &child.id().to_string()];
    let watch = Watch::start(&stage, &words);
    let recorder = || stage.json(&["status"])["sessions"][0]["recorder_pid"].as_u64();
    let first = recorder();
    Command::new("kill").args(["-USR1", &watch.child.id().to_string()]).status().unwrap();
    assert_eq!(watch.end(), 0);
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let next = Watch::start(&stage, &["--pid", &other.id().to_string()]);
    assert_eq!((recorder(), first.is_some()), (first, true));
    Command::new("kill").arg(other.id().to_string()).status().unwrap();
    other.wait().unwrap();
    assert_eq!(next.end(), 0);
    assert_eq!(incident(&stage)["process"]["name"], "victim");
}
