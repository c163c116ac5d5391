//! Programs that start are seen before their first instruction.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use heapr_inject::ExecWatch;

#[test]
fn a_program_waits_until_it_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("watched-program");
    // Copied by another process: a descriptor open for writing, inherited by a child of another test, forbids the exec.
    assert!(Command::new("cp").arg("/bin/true").arg(&program).status().unwrap().success());
    let mut watch = match ExecWatch::start() {
        Ok(watch) => watch,
        // Not root, or a kernel that cannot; the doctor says so.
        Err(error) => return eprintln!("no exec watch here: {error}"),
    };
    watch.watch(folder.path()).unwrap();
    let started_program = program.clone();
    let child = std::thread::spawn(move || Command::new(started_program).status().unwrap());
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut is_seen = false;
    while Instant::now() < deadline && !child.is_finished() {
        let Some(started) = watch.next(Duration::from_millis(50)).unwrap() else { continue };
        if started.executable == program {
            is_seen = true;
            // It waits: the program that runs is not it yet.
            std::thread::sleep(Duration::from_millis(100));
            assert!(!child.is_finished());
            let running = std::fs::read_link(format!("/proc/{}/exe", started.tid)).unwrap();
            assert_ne!(running, program);
        }
        started.allow();
    }
    assert!(is_seen, "the program was not seen");
    assert!(child.join().unwrap().success());
}

#[test]
fn a_place_that_is_not_there_is_refused() {
    let Ok(watch) = ExecWatch::start() else { return eprintln!("no exec watch here") };
    watch.watch(Path::new("/nonexistent/place")).unwrap_err();
}
