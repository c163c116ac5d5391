//! Memory from before an attach: it was never in recorded blocks.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use heapr_testkit::{Outcome, run};
use serde_json::Value;

use crate::{HEAPR, explained, folder_of};

/// Runs a command of heapr's with the folder's sessions.
fn heapr_with_sessions(arguments: &[&str], folder: &Path) -> Outcome {
    let runtime = folder.join("runtime");
    run(Command::new(HEAPR).args(arguments).current_dir(folder).env("HEAPR_RUNTIME_DIR", runtime))
}

/// Returns the answer on a program that heapr attaches to when it has its memory.
fn answer(program: &Path, kind: &str, folder: &Path) -> Value {
    let go = folder.join(format!("go.{kind}"));
    let mut child =
        Command::new(program).arg(&go).arg(kind).stdout(Stdio::piped()).spawn().expect("the program runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let (pid, file) = (child.id().to_string(), format!("{kind}.heapr"));
    heapr_with_sessions(&["start", kind, "--pid", &pid, "-q", "-o", &file], folder).ok();
    std::fs::write(&go, "").unwrap();
    assert!(child.wait().unwrap().success());
    heapr_with_sessions(&["stop", kind, "-q"], folder).ok();
    explained(&[file], folder)
}

#[test]
fn malloc_is_told_to_keep_what_lies_in_its_heap_and_no_mapping() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = folder.path().join("runtime");
    std::fs::create_dir(&runtime).unwrap();
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
    let program = folder.path().join("kept_by_malloc");
    let source = folder_of("kept_by_malloc.cc");
    let built =
        Command::new("g++").args(["-std=c++17", "-g", "-O1", "-o"]).arg(&program).arg(source).status();
    assert!(built.is_ok_and(|status| status.success()));
    let first = |kind: &str| {
        let answer = answer(&program, kind, folder.path());
        let first = answer["findings"][0]["sentence"].as_str().unwrap_or_default().to_owned();
        (first, answer.to_string())
    };
    let (freed, answer) = first("freed");
    assert!(freed.starts_with("Malloc keeps free memory: at least "), "{answer}");
    let (mapped, answer) = first("mapped");
    assert!(!answer.contains("Malloc keeps"), "{answer}");
    assert!(mapped.contains(" in other mappings"), "{answer}");
}
