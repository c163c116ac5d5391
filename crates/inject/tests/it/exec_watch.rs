//! Starting programs are reported before their first instruction.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use heapr_inject::ExecWatch;

/// Runs `body` with a watch; `None` if the watch is impossible: without root, or on an old kernel
/// (the doctor reports it).
fn with_watch<R: Send + 'static>(body: impl FnOnce(ExecWatch) -> R + Send + 'static) -> Option<R> {
    let thread = ExecWatch::in_thread(&[], |watch| match watch {
        Ok(watch) => Some(body(watch)),
        Err(error) => {
            eprintln!("no exec watch here: {error}");
            None
        }
    });
    thread.unwrap().join().unwrap()
}

/// Creates a program in its own folder.
fn program_in(folder: &Path) -> PathBuf {
    let program = folder.join("watched-program");
    // The program is copied by another process. A descriptor open for writing, inherited by another
    // test's child, would forbid the exec.
    assert!(Command::new("cp").arg("/bin/true").arg(&program).status().unwrap().success());
    program
}

#[test]
fn a_program_waits_until_it_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let program = program_in(folder.path());
    let place = folder.path().to_owned();
    // The program is started outside of the watch's thread, so that the child does not inherit the
    // watch.
    let (go, may_go) = std::sync::mpsc::channel();
    let has_ended = Arc::new(AtomicBool::new(false));
    let (started_program, ended) = (program.clone(), Arc::clone(&has_ended));
    let child = std::thread::spawn(move || {
        let status = may_go.recv().ok().map(|()| Command::new(started_program).status().unwrap());
        ended.store(true, Relaxed);
        status
    });
    let is_seen = with_watch(move |mut watch| {
        watch.watch(&place).unwrap();
        go.send(()).unwrap();
        let deadline = Instant::now() + heapr_testkit::LIMIT;
        let mut is_seen = false;
        while Instant::now() < deadline && !has_ended.load(Relaxed) {
            let Some(started) = watch.next(Duration::from_millis(50)).unwrap() else { continue };
            if started.executable == program {
                is_seen = true;
                // The process waits: it does not run the new program yet.
                std::thread::sleep(Duration::from_millis(100));
                assert!(!has_ended.load(Relaxed));
                let running = std::fs::read_link(format!("/proc/{}/exe", started.tid)).unwrap();
                assert_ne!(running, program);
            }
            started.allow();
        }
        is_seen
    });
    let status = child.join().unwrap();
    if let Some(is_seen) = is_seen {
        assert!(is_seen, "the program was not seen");
        assert!(status.unwrap().success());
    }
}

#[test]
fn a_place_that_is_not_there_is_refused() {
    with_watch(|watch| watch.watch(Path::new("/nonexistent/place")).unwrap_err());
}

/// A child between fork and exec has copies of its parent's descriptors. Were the watch among them,
/// an exec that waits when the watch ends would keep the watch alive.
#[test]
fn a_watch_that_ends_while_children_are_born_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let program = program_in(folder.path());
    let is_over = Arc::new(AtomicBool::new(false));
    let parents: Vec<_> = (0..3)
        .map(|_| {
            let (program, is_over) = (program.clone(), Arc::clone(&is_over));
            std::thread::spawn(move || {
                while !is_over.load(Relaxed) {
                    assert!(Command::new(&program).status().unwrap().success());
                }
            })
        })
        .collect();
    for round in 0..200 {
        let place = folder.path().to_owned();
        let outcome = with_watch(move |mut watch| {
            watch.watch(&place).unwrap();
            // Some watches end with unread requests, some with one that was answered.
            for _ in 0..round % 3 {
                watch.next(Duration::from_millis(2)).unwrap();
            }
        });
        if outcome.is_none() {
            break;
        }
    }
    is_over.store(true, Relaxed);
    heapr_testkit::wait_until("no child waits for a watch that has ended", || {
        parents.iter().all(std::thread::JoinHandle::is_finished).then_some(())
    });
    parents.into_iter().for_each(|parent| parent.join().unwrap());
}
