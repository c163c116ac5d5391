//! Names of blocks: by their contents, and by the functions that allocated them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{Stage, find_id, values, verdicts, victims};

fn names_in(stage: &Stage) -> String {
    stage.ok(&["snapshot", "export", "trace.heapr", "-o", "out.heapsnapshot", "--force"]);
    let text = std::fs::read_to_string(stage.path("out.heapsnapshot")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    value["strings"].to_string()
}

#[test]
fn containers_are_told_by_the_templates_that_allocated_them() {
    let (stage, _) = verdicts("typed.cc");
    let names = names_in(&stage);
    for wanted in values(&Stage::text("typed.cc"), "types") {
        assert!(names.contains(&format!("\"{wanted}")), "{wanted} is not in {names}");
    }
}

/// A class with virtual functions is named from the program's memory.
#[test]
fn objects_of_a_stripped_program_are_named_by_their_class() {
    let mut stage = Stage::new();
    let (program, arguments, _) = stage.build("typed.cc");
    let status = Command::new("strip").arg("--strip-all").arg(&program).status().unwrap();
    assert!(status.success());
    let pid = stage.start(&program, &arguments);
    stage.ok(&["snapshot", "take", "--graph", &pid.to_string()]);
    let leaks = stage.json(&["snapshot", "leaks", "trace.heapr"]);
    let groups = leaks["groups"].as_array().unwrap();
    assert!(groups.iter().any(|group| group["type"] == "Named" && group["kind"] == "definite"), "{leaks}");
    assert!(names_in(&stage).contains("\"Named\""));
    let names = names_in(&stage);
    let parts = ["elements of vector", "node of list", "node of map or set", "elements of deque"];
    let tables = ["buckets of unordered_map or set", "node of unordered_map or set", "map of deque"];
    for shape in parts.iter().chain(&tables) {
        assert!(names.contains(&format!("\"{shape} (by its shape)\"")), "{shape} is not in {names}");
    }
    // With symbols the leaks are the same.
    assert_eq!(leaks["totals"]["definite_count"], 1);
}

#[test]
fn a_place_on_a_stack_is_told_by_its_frame() {
    let (stage, _) = verdicts("threads.c");
    let found = stage.json(&["snapshot", "query", "trace.heapr", "--name", "on_stack"]);
    let id = find_id(&found).unwrap_or_else(|| panic!("no block of on_stack: {found}"));
    let retainers = stage.json(&["snapshot", "retainers", "trace.heapr", &format!("@{id}")]);
    let paths = retainers["paths"].to_string();
    let is_named = paths.contains(" stack_thread+0x") || paths.contains(" main+0x");
    assert!(paths.contains(", frame ") && is_named, "{paths}");
    // A thread-local variable is named, too.
    let holders = stage.json(&["snapshot", "holders", "trace.heapr"]).to_string();
    assert!(holders.contains(", TLS program!local") && holders.contains(", TLS program!second"), "{holders}");
}

/// Includes libraries that were loaded late: the C library creates their variables when a thread
/// uses them.
#[test]
fn variables_that_a_library_has_for_each_thread_are_named() {
    let (stage, _) = verdicts("modules.c");
    let holders = stage.json(&["snapshot", "holders", "trace.heapr"]).to_string();
    for variable in ["library.so!module_local", "library.so!large_local", "library.so.copy.so!module_local"] {
        assert!(holders.contains(&format!(", TLS {variable}")), "{variable}: {holders}");
    }
}

/// Containers store the address of their elements beside their number.
#[test]
fn containers_without_symbols_are_told_by_their_shape() {
    let mut stage = Stage::new();
    let text = Stage::text("typed_rust.rs");
    let program = stage.path("program");
    let mut compiler = Command::new("rustc");
    compiler.args(["-O", "--edition", "2021", "-C", "strip=symbols", "-o"]).arg(&program);
    let Ok(status) = compiler.arg(victims().join("typed_rust.rs")).status() else {
        return heapr_testkit::not_run("rustc is missing");
    };
    assert!(status.success());
    let pid = stage.start(&program, &[]);
    stage.ok(&["snapshot", "take", "--graph", &pid.to_string()]);
    let names = names_in(&stage);
    for wanted in values(&text, "types") {
        assert!(names.contains(&format!("\"{wanted}")), "{wanted} is not in {names}");
    }
    let leaks = stage.json(&["snapshot", "leaks", "trace.heapr"]);
    let is_table = |group: &&Value| group["type"] == "table of HashMap";
    assert!(!leaks["groups"].as_array().unwrap().iter().any(|group| is_table(&group)), "{leaks}");
}

/// Includes objects with a block of their own, because the interpreter runs without arenas.
#[test]
fn objects_of_cpython_are_named_by_their_types() {
    let mut stage = Stage::new();
    let Some(python) = python() else { return heapr_testkit::not_run("python3 is missing") };
    let code = "import os\nclass Held:\n  __slots__ = ('one', 'two')\nkept = [Held() for _ in range(500)]\n\
                for held in kept: held.one = {1: 2}\nprint('ready', os.getpid(), flush=True)\nimport time\ntime.sleep(1000)";
    let arguments = ["PYTHONMALLOC=malloc", &python, "-c", code].map(str::to_owned);
    let pid = stage.start(Path::new("/usr/bin/env"), &arguments);
    stage.ok(&["snapshot", "take", "--graph", &pid.to_string()]);
    let names = names_in(&stage);
    for wanted in ["Held", "dict", "list", "type"] {
        assert!(names.contains(&format!("\"{wanted} (of CPython)\"")), "{wanted} is not in {names}");
    }
}

fn python() -> Option<String> {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|path| !path.is_empty())
}
