//! A process continues after a snapshot as before.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::node_server::{Program, has_node, ids_of, request};

#[test]
fn a_loaded_server_answers_every_request_and_closes_its_port() {
    if !has_node() {
        return;
    }
    let server = Program::server(30_000);
    let (pid, port) = (server.pid().to_string(), server.port());
    let is_done = AtomicBool::new(false);
    let (answers, outcome) = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut answers = 0;
            while !is_done.load(Ordering::Relaxed) {
                assert!(request(port).ends_with("hello"));
                answers += 1;
            }
            answers
        });
        let outcome = server.heapr(&["snapshot", "take", &pid]);
        is_done.store(true, Ordering::Relaxed);
        (load.join().unwrap(), outcome)
    });
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(answers > 0 && request(port).ends_with("hello"));
    server.wait_until_closed();
    let path = server.folder.path().join(outcome.stdout.trim_end());
    assert_eq!(ids_of(&path, "Thing").len(), 30_000);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(
        outcome.stdout.starts_with("Heap.")
            && outcome.stdout.ends_with(&format!(".{pid}.0.001.heapsnapshot\n"))
    );
    assert_eq!(server.heap_files().len(), 1);
    assert!(outcome.stderr.contains("the thread will stand still for about"), "{}", outcome.stderr);
}

#[test]
fn the_port_can_be_opened_again_after_it_was_closed() {
    if !has_node() {
        return;
    }
    let server = Program::server(10);
    let pid = server.pid().to_string();
    for _ in 0..3 {
        let outcome = server.heapr(&["snapshot", "take", &pid, "-q"]);
        assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""), "{}", outcome.stdout);
        server.wait_until_closed();
    }
    assert_eq!(server.heap_files().len(), 3);
    assert!(request(server.port()).ends_with("hello"));
}

#[test]
fn an_inspector_that_was_open_before_stays_open() {
    if !has_node() {
        return;
    }
    let mut server = Program::node(&["--inspect=127.0.0.1:0"], crate::node_server::SERVER, &[]);
    server.wait_for_output("port ");
    let before = server.listening();
    assert_eq!(before.len(), 2);
    let outcome = server.heapr(&["snapshot", "take", &server.pid().to_string(), "--no-signal"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert_eq!(server.listening(), before);
}

#[test]
fn an_inspector_that_the_program_opened_by_itself_is_found_and_stays_open() {
    if !has_node() {
        return;
    }
    let script =
        "require('inspector').open(0, '127.0.0.1'); setInterval(() => {}, 1000); console.log('ready');";
    let mut program = Program::node(&["--inspect-port=0"], script, &[]);
    program.wait_for_output("ready");
    let before = program.listening();
    let outcome = program.heapr(&["snapshot", "take", &program.pid().to_string()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert_eq!(program.listening(), before);
}

#[test]
fn a_busy_loop_is_looked_into_too() {
    if !has_node() {
        return;
    }
    let script = "console.log('busy'); const end = Date.now() + 4000; while (Date.now() < end); \
                  console.log('port 0'); setInterval(() => {}, 1000);";
    let mut program = Program::node(&["--inspect-port=0"], script, &[]);
    let outcome = program.heapr(&["snapshot", "take", &program.pid().to_string()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    heapr_testkit::wait_until("its port is closed", || program.listening().is_empty().then_some(()));
    assert!(program.is_alive());
}

#[test]
fn workers_are_taken_each_into_its_own_file() {
    if !has_node() {
        return;
    }
    let script = "
        const { Worker, isMainThread, threadId } = require('worker_threads');
        class OfMain {} class OfWorker {}
        globalThis.kept = isMainThread ? new OfMain() : [new OfWorker(), new OfWorker()];
        setInterval(() => {}, 1000);
        if (isMainThread) {
            const workers = [new Worker(__filename), new Worker(__filename)];
            let left = workers.length;
            for (const worker of workers) worker.on('online', () => --left || setTimeout(() => console.log('ready'), 300));
        }";
    let program = Program::node(&["--inspect-port=0"], script, &[]);
    let outcome =
        program.heapr(&["snapshot", "take", "--workers", "--format", "json", &program.pid().to_string()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let answer: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let snapshots = answer["snapshots"].as_array().unwrap();
    let threads: Vec<_> = snapshots.iter().map(|snapshot| snapshot["thread"].as_u64().unwrap()).collect();
    assert_eq!(threads, [0, 1, 2], "{answer:#}");
    for (snapshot, (of_main, of_worker)) in snapshots.iter().zip([(1, 0), (0, 2), (0, 2)]) {
        let path = program.folder.path().join(snapshot["file"].as_str().unwrap());
        let counts = (ids_of(&path, "OfMain").len(), ids_of(&path, "OfWorker").len());
        assert_eq!(counts, (of_main, of_worker), "{snapshot:#}");
    }
    assert_eq!(program.listening(), [0_u16; 0]);
}
