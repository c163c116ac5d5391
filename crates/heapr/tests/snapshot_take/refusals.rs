//! Processes that cannot be inspected are left alone, and one line says why.

use std::net::TcpListener;
use std::process::Command;

use heapr_testkit::Outcome;

use crate::command;
use crate::node_server::{Program, has_node};

fn refused(outcome: &Outcome, parts: &[&str]) {
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    for part in parts {
        assert!(outcome.stderr.contains(part), "{part:?} is not in {}", outcome.stderr);
    }
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
}

#[test]
fn a_program_that_is_no_node_gets_no_signal() {
    let mut command = Command::new("sh");
    command.args(["-c", "trap 'echo harmed' USR1 USR2; echo ready; while :; do sleep 0.05; done"]);
    let mut program = Program::start(command, "");
    let pid = program.pid().to_string();
    // With an option of JavaScript; without one the native heap would be meant.
    refused(&program.heapr(&["snapshot", "take", &pid, "--wait", "1"]), &["is no Node process", &pid]);
    refused(&program.heapr(&["snapshot", "take", &pid, "--signal", "USR2"]), &["--heapsnapshot-signal"]);
    assert!(program.is_alive() && !program.output().contains("harmed"));
}

#[test]
fn a_process_that_would_die_of_the_signal_gets_none() {
    // Program named like Node without a handler, as in a Node that is just starting or has
    // --disable-sigusr1.
    let folder = tempfile::tempdir().unwrap();
    let node = folder.path().join("node");
    std::fs::copy("/bin/sleep", &node).unwrap();
    let mut child = Command::new(&node).arg("100").spawn().unwrap();
    let heapr = command(&["snapshot", "take", &child.id().to_string()]).output();
    let stderr = String::from_utf8(heapr.unwrap().stderr).unwrap();
    assert!(stderr.contains("does not catch SIGUSR1, which would end it"), "{stderr}");
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_program_with_a_handler_of_its_own_lives_on() {
    if !has_node() {
        return;
    }
    let script = "process.on('SIGUSR1', () => console.log('mine')); setInterval(() => {}, 1000); console.log('ready');";
    let mut program = Program::node(&["--inspect-port=0"], script, &[]);
    let pid = program.pid().to_string();
    refused(&program.heapr(&["snapshot", "take", &pid, "--wait", "1"]), &["a SIGUSR1 handler of its own"]);
    assert!(program.is_alive() && program.output().contains("mine"));
}

#[test]
fn a_signal_that_node_was_told_to_use_otherwise_is_not_sent() {
    if !has_node() {
        return;
    }
    let server = Program::node(&["--heapsnapshot-signal=SIGUSR1"], crate::node_server::SERVER, &[]);
    let pid = server.pid().to_string();
    refused(
        &server.heapr(&["snapshot", "take", &pid]),
        &["--heapsnapshot-signal=SIGUSR1", "--signal SIGUSR1"],
    );
    assert_eq!(server.heap_files(), [""; 0]);
    let outcome = server.heapr(&["snapshot", "take", "-q", "--signal", "SIGUSR1", &pid]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
}

#[test]
fn a_process_that_could_not_write_its_snapshot_gets_no_signal() {
    if !has_node() {
        return;
    }
    // Node throws if it cannot write, and ends.
    let options = ["--heapsnapshot-signal=SIGUSR2", "--diagnostic-dir=gone"];
    let mut server = Program::node(&options, crate::node_server::SERVER, &[]);
    let pid = server.pid().to_string();
    let outcome = server.heapr(&["snapshot", "take", "--signal", "SIGUSR2", &pid]);
    refused(&outcome, &["would end with an exception on SIGUSR2", "gone, which is not there"]);
    assert!(server.is_alive());
    std::fs::create_dir(server.folder.path().join("gone")).unwrap();
    let outcome = server.heapr(&["snapshot", "take", "-q", "--signal", "SIGUSR2", &pid]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
}

#[test]
fn a_taken_port_is_told_before_any_signal() {
    if !has_node() {
        return;
    }
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let script = "setInterval(() => {}, 1000); console.log('ready');";
    let program = Program::node(&[&format!("--inspect-port={port}")], script, &[]);
    let outcome = program.heapr(&["snapshot", "take", &program.pid().to_string()]);
    let me = format!("process {} (", std::process::id());
    refused(&outcome, &[&format!("port {port}"), "is taken by", &me]);
    assert_eq!(program.output(), "ready\n");
}

#[test]
fn without_the_signal_a_closed_inspector_stays_closed() {
    if !has_node() {
        return;
    }
    let server = Program::server(10);
    refused(&server.heapr(&["snapshot", "take", "--no-signal", &server.pid().to_string()]), &["SIGUSR1"]);
    assert_eq!(server.listening(), [server.port()]);
}

#[test]
fn a_file_that_is_there_is_not_overwritten_nor_written_through() {
    if !has_node() {
        return;
    }
    let server = Program::server(10);
    let pid = server.pid().to_string();
    let folder = server.folder.path();
    std::fs::write(folder.join("precious"), "data").unwrap();
    std::os::unix::fs::symlink(folder.join("precious"), folder.join("link")).unwrap();
    for name in ["precious", "link"] {
        let outcome = server.heapr(&["snapshot", "take", &pid, "-q", "-o", name]);
        refused(&outcome, &["exists"]);
    }
    let outcome = server.heapr(&["snapshot", "take", &pid, "-q", "-f", "-o", "link"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert_eq!(std::fs::read(folder.join("precious")).unwrap(), b"data");
    assert!(folder.join("link").symlink_metadata().unwrap().is_file());
}

#[test]
fn a_process_that_is_not_there_is_told() {
    let heapr = command(&["snapshot", "take", "4194304"]).output().unwrap();
    assert_eq!(String::from_utf8(heapr.stderr).unwrap(), "heapr: there is no process 4194304\n");
    assert_eq!(heapr.status.code(), Some(2));
}

#[test]
fn a_target_that_is_not_there_leaves_no_port_open() {
    if !has_node() {
        return;
    }
    let server = Program::server(10);
    let outcome = server.heapr(&["snapshot", "take", "--target", "nonsense", &server.pid().to_string()]);
    refused(&outcome, &["has no target \"nonsense\""]);
    server.wait_until_closed();
}
