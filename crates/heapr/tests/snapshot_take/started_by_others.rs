//! Pid of a shell or of a program that starts others: the message names the Node below it, and
//! `--tree` captures it.

use std::process::Command;

use crate::contained::child_of;
use crate::node_server::{Program, SERVER, has_node, ids_of};

#[test]
fn below_a_shell_node_is_named_and_taken() {
    if !has_node() {
        return;
    }
    let mut command = Command::new("sh");
    command.args(["-c", "node --inspect-port=0 app.js; true"]).env("OBJECTS", "300");
    let mut shell = Program::start(command, SERVER);
    let (pid, node) = (shell.pid().to_string(), child_of(shell.pid()).to_string());
    for arguments in [&["snapshot", "take", &pid][..], &["snapshot", "take", &pid, "-o", "a.heapsnapshot"]] {
        let outcome = shell.heapr(arguments);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{outcome:?}");
        assert!(outcome.stderr.contains(&node) && outcome.stderr.contains("--tree"), "{}", outcome.stderr);
    }
    let outcome = shell.heapr(&["snapshot", "take", "--tree", "-q", &pid, "-o", "a.heapsnapshot"]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    assert_eq!(ids_of(&shell.folder.path().join("a.heapsnapshot"), "Thing").len(), 300);
    assert!(shell.is_alive());
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(node.parse().unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}

#[test]
fn below_another_node_it_is_named_too() {
    if !has_node() {
        return;
    }
    let script = "
        const child = \"console.log('ready'); setInterval(() => {}, 1000)\";
        const options = { stdio: ['ignore', 'inherit', 'inherit'] };
        const started = require('child_process').spawn(process.execPath, ['--inspect-port=0', '-e', child], options);
        process.on('SIGTERM', () => { started.kill(); process.exit(); });
        setInterval(() => {}, 1000);
    ";
    let mut parent = Program::node(&["--inspect-port=0"], script, &[]);
    let (pid, child) = (parent.pid().to_string(), child_of(parent.pid()).to_string());
    let outcome = parent.heapr(&["snapshot", "take", &pid]);
    assert_eq!((outcome.status, outcome.stdout.lines().count()), (0, 1), "{outcome:?}");
    assert!(outcome.stderr.contains(&format!("has started process {child} (")), "{}", outcome.stderr);
    let outcome = parent.heapr(&["snapshot", "take", "--tree", "-q", &pid]);
    assert_eq!((outcome.status, outcome.stdout.lines().count()), (0, 2), "{outcome:?}");
    assert!(outcome.stdout.contains(&format!(".{child}.0.")), "{}", outcome.stdout);
    let pid = rustix::process::Pid::from_raw(parent.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    parent.child.wait().unwrap();
}

#[test]
fn a_native_snapshot_is_not_named_as_one_of_javascript() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo ready; while :; do sleep 0.05; done"]);
    let program = Program::start(command, "");
    let pid = program.pid().to_string();
    for native in [&["--native"][..], &[]] {
        let mut arguments = vec!["snapshot", "take", &pid, "-o", "a.heapsnapshot"];
        arguments.extend(native);
        let outcome = program.heapr(&arguments);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(!program.folder.path().join("a.heapsnapshot").exists());
    }
}
