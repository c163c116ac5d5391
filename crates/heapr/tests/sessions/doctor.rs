//! `heapr doctor` finds what the other tests use.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use crate::stage::Stage;

#[test]
fn it_finds_what_works_on_this_machine() {
    let stage = Stage::new();
    let output = stage.heapr(&["doctor"]).ok().stdout;
    let line = |topic: &str| {
        let found = output.lines().find(|line| line.contains(topic));
        found.unwrap_or_else(|| panic!("nothing on {topic}: {output}")).to_owned()
    };
    for topic in ["processor", "kernel", "shared buffers", "descriptor passing"] {
        assert!(line(topic).starts_with("ok"), "{}", line(topic));
    }
    // heapr's own heap, which changes while it is read.
    let version = Command::new("getconf").arg("GNU_LIBC_VERSION").output().unwrap().stdout;
    let version = String::from_utf8(version).unwrap().trim().to_owned();
    let minor: u32 = version.rsplit('.').next().unwrap().parse().unwrap();
    if (31..=43).contains(&minor) {
        let heap = line("blocks before attaching");
        assert!(heap.starts_with("ok") && heap.contains(&version), "{heap}, {version}");
    }
}

/// Waits for a line after it has forbidden itself executable memory. Status 77: the kernel does not
/// know that setting.
const REFUSES_CODE: &str = r"
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
int main(void) {
    char line[8];
    if (prctl(65, 1, 0, 0, 0)) return 77;
    puts(`ready`);
    fflush(stdout);
    for (int number = 0; number < 100; number++) free(malloc(100));
    return fgets(line, sizeof line, stdin) ? 0 : 1;
}
";

#[test]
fn a_process_that_may_not_make_memory_executable_is_named_and_runs_on() {
    let stage = Stage::new();
    let (source, program) = (stage.path("refuses.c"), stage.path("refuses"));
    std::fs::write(&source, REFUSES_CODE.replace('`', "\"")).unwrap();
    let built = Command::new("gcc").args(["-O1", "-fno-builtin", "-o"]).arg(&program).arg(&source).status();
    assert!(built.unwrap().success());
    let mut child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    if ready.is_empty() {
        assert_eq!(child.wait().unwrap().code(), Some(77));
        heapr_testkit::not_run("the kernel has no PR_SET_MDWE");
        return;
    }
    let pid = child.id().to_string();
    let said = stage.heapr(&["doctor", &pid]);
    let named = said.stdout.contains("MemoryDenyWriteExecute=") && said.stdout.contains("PR_SET_MDWE");
    assert!(named, "{}{}", said.stdout, said.stderr);
    stage.heapr(&["start", "refuses", "--pid", &pid]).fails_with(&[
        "it may not make memory executable",
        "MemoryDenyWriteExecute=",
        "start it",
    ]);
    child.stdin.take().unwrap().write_all(b"on\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
