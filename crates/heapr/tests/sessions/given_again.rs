//! Process id that the kernel gives to another process in the same session.

use std::process::Command;

use serde_json::Value;

use crate::stage::Stage;

/// Runs two programs one after the other, the second with the pid of the first. It is the second
/// process of its namespace, in which only the recorder's threads take further pids.
const AGAIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static void first_alloc(void) { if (malloc(11) == NULL) abort(); }
__attribute__((noinline)) static void second_alloc(void) { if (malloc(7) == NULL) abort(); }
static pid_t start(char *self, char *role) {
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, role, NULL);
        _exit(9);
    }
    waitpid(child, NULL, 0);
    return child;
}
int main(int count, char **words) {
    if (count > 1) {
        int is_second = strcmp(words[1], "second") == 0;
        for (int i = 0; i < (is_second ? 2000 : 1000); i++)
            is_second ? second_alloc() : first_alloc();
        return 0;
    }
    pid_t first = start(words[0], "first");
    for (int tries = 0; tries < 1000; tries++) {
        FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
        if (last == NULL)
            return 77;
        fprintf(last, "%d", (int)first - 1);
        fclose(last);
        pid_t child = fork();
        if (child == first) {
            waitpid(child, NULL, 0);
            return 0;
        }
        if (child == 0) {
            if (getpid() == first)
                execl(words[0], words[0], "second", NULL);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return 77;
}
"#;

#[test]
fn a_process_id_that_is_given_again_is_another_process() {
    let stage = Stage::new();
    let (source, program) = (stage.path("again.c"), stage.argument("again"));
    std::fs::write(&source, AGAIN).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-fno-builtin", "-fno-optimize-sibling-calls", "-o", &program]).arg(&source);
    assert!(gcc.status().unwrap().success());
    // The program's own pids; the recorder is in the same namespace, so the file has them too.
    let recorded = stage.command(&["run", "--quiet", "-o", "again.heapr", "--", &program]);
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    command.arg(recorded.get_program()).args(recorded.get_args());
    command.envs(recorded.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(stage.path("."));
    let outcome = heapr_testkit::run(&mut command);
    if outcome.stderr.contains("unshare") || outcome.status == 77 {
        heapr_testkit::not_run("processes cannot be numbered anew here");
        return;
    }
    let outcome = outcome.ok();
    let info = stage.json(&["info", "again.heapr"]);
    let of = |role: &str| {
        let processes = info["processes"].as_array().unwrap();
        let is_it = |process: &&Value| process["command_line"][1] == role;
        processes.iter().find(is_it).unwrap_or_else(|| panic!("{role} in {info} {outcome:?}")).clone()
    };
    let (first, second) = (of("first"), of("second"));
    assert_eq!(first["pid"], second["pid"]);
    assert!(first["end_ns"].as_u64() <= second["start_ns"].as_u64(), "{first} {second}");
    for (function, count, bytes) in [("first_alloc", 1000, 11_000), ("second_alloc", 2000, 14_000)] {
        let report = stage.json(&["report", "again.heapr", "--stacks", "--require-frames", function]);
        let groups = report["groups"].as_array().unwrap();
        let sum = |key: &str| groups.iter().map(|group| group[key].as_u64().unwrap()).sum::<u64>();
        assert_eq!((sum("total_count"), sum("total_bytes")), (count, bytes), "{report}");
    }
}
