//! Go's own heap, compared with the program's own profile.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use heapr_testkit::{not_run, wait_until};
use serde_json::Value;

/// Program that keeps some blocks and drops others, prints its `pprof` figures, and waits for its
/// input to end.
const SOURCE: &str = r#"
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	PPROF
)

var kept [][]byte
var dropped []byte

//go:noinline
func keeps() {
	for i := 0; i < 300; i++ {
		kept = append(kept, make([]byte, 10240))
	}
}

//go:noinline
func drops() {
	for i := 0; i < 500; i++ {
		dropped = make([]byte, 4096)
	}
	dropped = nil
}

func main() {
	RATE
	keeps()
	drops()
	runtime.GC()
	runtime.GC()
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(kept)
}
"#;

/// Builds the program without C; `None` if Go is not installed.
fn build(folder: &Path, name: &str, is_profiled: bool, flags: &[&str]) -> Option<PathBuf> {
    let source = if is_profiled {
        // Every allocation is a sample, so that the result is certain.
        SOURCE.replace("PPROF", r#"_ "runtime/pprof""#).replace("RATE", "runtime.MemProfileRate = 1")
    } else {
        SOURCE.replace("PPROF", "").replace("RATE", "")
    };
    let (file, program) = (folder.join(format!("{name}.go")), folder.join(name));
    std::fs::write(&file, source).unwrap();
    let built = Command::new("go")
        .arg("build")
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg(&file)
        .env("CGO_ENABLED", "0")
        .env("GOCACHE", std::env::temp_dir().join("heapr-test-go-cache"))
        .status();
    let Ok(status) = built else {
        not_run("no Go compiler here");
        return None;
    };
    assert!(status.success());
    Some(program)
}

fn heapr() -> Command {
    crate::recording::command(&[])
}

fn json(arguments: &[&str]) -> Value {
    let output = heapr().args(arguments).args(["--format", "json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

/// Starts the program, and waits until it has done all its work.
fn started(mut command: Command) -> Child {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

/// Returns allocations and live bytes of a function in Go's heap of a recording.
fn of_function(file: &str, function: &str, size: u64) -> (u64, u64) {
    let (from, to) = (size.to_string(), (size + 1).to_string());
    let report = json(&["report", "--totals", "--require-frames", function, "--size", &from, &to, file]);
    let heaps = report["heaps"].as_array().cloned().unwrap_or_default();
    let go = heaps.iter().find(|heap| heap["heap"] == "Go");
    let number = |field: &str| go.and_then(|go| go[field].as_u64()).unwrap_or(0);
    (number("alloc_count"), number("outstanding_bytes"))
}

#[test]
fn what_a_go_program_keeps_and_drops_is_seen_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    for (name, flags) in [("whole", &[][..]), ("stripped", &["-ldflags", "-s -w"])] {
        let Some(program) = build(folder.path(), name, true, flags) else { return };
        let mut child = started(Command::new(&program));
        let file = folder.path().join(format!("{name}.heapr"));
        let file = file.to_str().unwrap();
        let session = format!("go-{name}-{}", std::process::id());
        let pid = child.id().to_string();
        let begun = heapr().args(["start", &session, "--pid", &pid, "-o", file]).output().unwrap();
        let said = String::from_utf8_lossy(&begun.stderr).into_owned();
        assert!(begun.status.success(), "{said}");
        assert!(heapr().args(["stop", &session]).stdout(Stdio::null()).status().unwrap().success());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success(), "it runs on");
        assert_eq!(of_function(file, "main.keeps", 10240), (300, 300 * 10240), "{name}");
        assert_eq!(of_function(file, "main.drops", 4096), (500, 0), "{name}");
    }
}

#[test]
fn a_go_program_that_asks_for_no_profile_is_sampled_from_its_start() {
    let folder = tempfile::tempdir().unwrap();
    // A position-independent program has a loader, and no C library.
    for (name, flags) in [("plain", &[][..]), ("anywhere", &["-buildmode=pie"])] {
        let Some(program) = build(folder.path(), name, false, flags) else { return };
        let file = folder.path().join(format!("{name}.heapr"));
        let mut command = heapr();
        command.args(["run", "-q", "-o"]).arg(&file).arg("--").arg(&program);
        let mut child = started(command);
        let file = file.to_str().unwrap().to_owned();
        wait_until("its heap is seen", || (of_function(&file, "main.keeps", 10240).1 > 0).then_some(()));
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success(), "{name}");
        let info = json(&["info", &file]);
        let sampling = info["sampling"].as_array();
        assert!(sampling.is_some_and(|all| all.iter().any(|one| one["is_runtime"] == true)), "{name}");
    }
}
