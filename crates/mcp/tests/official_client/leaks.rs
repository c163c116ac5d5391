//! Leaks in C++, Python and Node, found by tools alone.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use heapr_testkit::not_run;
use serde_json::json;

use crate::client::{id, with_client};

const CPP: &str = "#include <vector>\n#include <string>\nstd::vector<std::string *> registry;\n\
    __attribute__((noinline)) void register_session(int number) {\n    registry.push_back(new std::string(300, 'a' + number % 20));\n}\n\
    int main() {\n    for (int i = 0; i < 5000; i++) register_session(i);\n    return 0;\n}\n";

const PYTHON: &str = "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\nkept = []\n\
    def keep_page():\n    kept.append(libc.malloc(70001))\n\nfor _ in range(100):\n    keep_page()\n";

const NODE: &str = "class Order { constructor(i) { this.text = 'order ' + i; this.rows = new Array(50).fill(i); } }\n\
    const openOrders = [];\nsetInterval(() => { for (let i = 0; i < 20; i++) openOrders.push(new Order(openOrders.length)); }, 5);\n\
    console.log('ready');\n";

/// A program that is killed at the end of the test.
struct Ended(Child);

impl Ended {
    /// Waits for the line `ready`.
    fn wait_until_ready(&mut self) {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_leak_in_cpp_is_named_with_its_line() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, program) = (scratch.path().join("leak.cc"), scratch.path().join("leak"));
    std::fs::write(&source, CPP).unwrap();
    let built = Command::new("g++").args(["-g", "-O1", "-o"]).args([&program, &source]).status();
    if !built.is_ok_and(|status| status.success()) {
        return not_run("there is no g++");
    }
    with_client(scratch.path(), &["--allow-attach"], async |client| {
        let recorded = client.ask("record", json!({"program": [program]})).await;
        let trace = id(&recorded).to_owned();
        assert!(trace == "t1" && recorded.contains("exit status: 0"), "{recorded}");
        let stacks =
            client.ask("report", json!({"file": trace, "require_frames": ["register_session*"]})).await;
        assert!(stacks.contains("register_session") && stacks.contains("main"), "{stacks}");
        assert!(!recorded.contains("timeout"), "{recorded}");
        let lines = client.ask("source_lines", json!({"file": trace, "top": 2})).await;
        assert!(lines.contains("> ") && lines.contains("new std::string(300"), "{lines}");
        let explained = client.ask("explain", json!({"files": [trace]})).await;
        assert!(explained.contains("register_session"), "{explained}");
        let second = client.ask("record", json!({"program": [program]})).await;
        let diff = client.ask("diff", json!({"before": trace, "after": id(&second)})).await;
        assert!(diff.contains("t1") || !diff.is_empty(), "{diff}");
        let callers =
            client.ask("report", json!({"file": trace, "callers_of": "register_session*", "top": 3})).await;
        assert!(callers.contains("main"), "{callers}");
        let endless = client.ask("record", json!({"program": ["sleep", "1000"], "seconds": 1})).await;
        assert!(endless.starts_with("t3 ") && endless.contains("signal"), "{endless}");
    });
}

#[test]
fn a_leak_in_python_is_found_in_a_process_that_runs() {
    let scratch = tempfile::tempdir().unwrap();
    let script = scratch.path().join("leak.py");
    std::fs::write(&script, format!("{PYTHON}print('ready', flush=True)\nimport time\nwhile True:\n    keep_page()\n    time.sleep(0.01)\n"))
        .unwrap();
    let started = Command::new("python3").arg(&script).stdout(Stdio::piped()).spawn();
    let Ok(mut python) = started.map(Ended) else { return not_run("there is no python3") };
    python.wait_until_ready();
    let pid = python.0.id();
    with_client(scratch.path(), &["--allow-attach"], async |client| {
        let listed = client.ask("list_processes", json!({"name": "leak.py"})).await;
        assert!(listed.lines().any(|line| line.starts_with(&format!("{pid} "))), "{listed}");
        let trace = client.ask("attach", json!({"pid": pid, "seconds": 2})).await;
        let trace = id(&trace).to_owned();
        let sizes = json!({"file": trace, "size_from": "70001", "size_to": "70002", "at": "peak"});
        let report = client.ask("report", sizes).await;
        assert!(report.contains("ffi") || report.contains("ctypes"), "{report}");
        let summary = client.ask("summary", json!({"file": trace})).await;
        assert!(summary.contains("Outstanding"), "{summary}");
        let explained = client.ask("explain", json!({"pid": pid})).await;
        assert!(!explained.is_empty());
    });
}

#[test]
fn a_leak_in_node_is_named_with_what_holds_it() {
    let scratch = tempfile::tempdir().unwrap();
    let script = scratch.path().join("leak.js");
    std::fs::write(&script, NODE).unwrap();
    let started = Command::new("node").arg(&script).stdout(Stdio::piped()).spawn();
    let Ok(mut node) = started.map(Ended) else { return not_run("there is no node") };
    node.wait_until_ready();
    let pid = node.0.id();
    with_client(scratch.path(), &["--allow-attach"], async |client| {
        let mut snapshots = Vec::new();
        for _ in 0..3 {
            snapshots.push(id(&client.ask("snapshot", json!({"pid": pid})).await).to_owned());
        }
        assert_eq!(snapshots, ["s1", "s2", "s3"]);
        let suspects = client.ask("suspects", json!({"files": snapshots, "top": 2})).await;
        let first = suspects.lines().find(|line| line.starts_with("1. ")).unwrap();
        assert!(first.contains("openOrders") && first.contains("leak"), "{suspects}");
        let object = suspects.split('@').nth(1).unwrap();
        let object: String = object.chars().take_while(char::is_ascii_digit).collect();
        let held = client.ask("retainers", json!({"file": "s3", "object": format!("@{object}")})).await;
        assert!(held.contains("openOrders"), "{held}");
        let summary = client.ask("summary", json!({"file": "s3", "top": 3})).await;
        assert!(summary.contains("Retained") || summary.contains("retained"), "{summary}");
        let diff = client.ask("diff", json!({"before": "s1", "after": "s3"})).await;
        assert!(diff.contains("Order"), "{diff}");
    });
}
