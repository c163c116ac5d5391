//! Program that execs by a system call of its own with an environment of its own. The agent does
//! not see this exec, and the recording says so.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::stage::Stage;

/// Execs itself, directly or with `fork` in a child that it waits for; after the exec it waits for
/// the end of its input.
const GOES_ON: &str = r"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static long go_on(char **arguments) {
    char *none[] = {NULL};
    long answer;
    __asm__ volatile(`syscall`
                     : `=a`(answer)
                     : `a`(59L), `D`(`/proc/self/exe`), `S`(arguments), `d`(none)
                     : `rcx`, `r11`, `memory`);
    return answer;
}
int main(int count, char **given) {
    char *arguments[] = {given[0], `waits`, NULL};
    char byte;
    int status = 9;
    for (int number = 0; number < 100; number++) free(malloc(100));
    if (count > 1 && !strcmp(given[1], `waits`)) {
        while (read(0, &byte, 1) > 0) {}
        return 0;
    }
    if (count > 1 && !strcmp(given[1], `fork`)) {
        pid_t pid = fork();
        if (pid) {
            waitpid(pid, &status, 0);
            return WEXITSTATUS(status);
        }
    } else if (read(0, &byte, 1) != 1) {
        return 8;
    }
    return (int)go_on(arguments);
}
";

fn build(stage: &Stage) -> String {
    let (source, program) = (stage.path("goes_on.c"), stage.path("goes_on"));
    std::fs::write(&source, GOES_ON.replace('`', "\"")).unwrap();
    let built = Command::new("gcc").args(["-O1", "-fno-builtin", "-o"]).arg(&program).arg(&source).status();
    assert!(built.unwrap().success());
    program.display().to_string()
}

/// Waits until the file has the notice.
fn wait_until_said(stage: &Stage, file: &str) {
    heapr_testkit::wait_until("it is said that it went on", || {
        let info: Value =
            serde_json::from_str(&stage.heapr(&["info", file, "--format", "json"]).stdout).ok()?;
        let notices = info["notices"].as_array()?;
        let says = |notice: &Value| {
            let text = notice["text"].as_str().unwrap_or_default();
            text.contains("it went on to goes_on by a system call that no hook sees")
        };
        notices.iter().any(says).then_some(())
    });
}

fn ended(mut child: Child) -> Option<i32> {
    drop(child.stdin.take());
    child.wait().unwrap().code()
}

#[test]
fn a_child_that_goes_on_unseen_is_told_of_while_it_runs() {
    let stage = Stage::new();
    let program = build(&stage);
    let mut run = stage.command(&["run", "-q", "-o", "t.heapr", "--", &program, "fork"]);
    let run = run.stdin(Stdio::piped()).spawn().unwrap();
    wait_until_said(&stage, "t.heapr");
    assert_eq!(ended(run), Some(0));
    let info = stage.json(&["info", "t.heapr"]);
    assert_eq!(info["notices"].as_array().map(Vec::len), Some(1), "{info}");
    assert!(stage.json(&["report", "t.heapr", "--totals"])["totals"]["alloc_count"].as_u64() >= Some(100));
}

#[test]
fn a_process_that_was_attached_to_and_goes_on_unseen_is_told_of() {
    let stage = Stage::new();
    let program = build(&stage);
    let mut child = Command::new(&program).stdin(Stdio::piped()).spawn().unwrap();
    crate::stage::wait_for_own_code(child.id());
    stage.heapr(&["start", "on", "-o", "t.heapr", "--pid", &child.id().to_string()]).ok();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"1").unwrap();
    wait_until_said(&stage, "t.heapr");
    stage.heapr(&["stop", "on", "-q"]).ok();
    assert_eq!(ended(child), Some(0));
}
