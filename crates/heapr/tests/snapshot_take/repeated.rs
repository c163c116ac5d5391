//! Several snapshots of a process: in one session, at intervals, at a size.

use std::io::{BufRead, BufReader, Write};

use crate::node_server::{Program, has_node, ids_of};

#[test]
fn object_ids_continue_within_one_session() {
    if !has_node() {
        return;
    }
    let server = Program::server(2000);
    let mut heapr = server.spawn_heapr(&["snapshot", "take", "--again", "-q", &server.pid().to_string()]);
    let mut lines = BufReader::new(heapr.stdout.take().unwrap()).lines();
    let mut stdin = heapr.stdin.take().unwrap();
    let first = lines.next().unwrap().unwrap();
    writeln!(stdin).unwrap();
    let second = lines.next().unwrap().unwrap();
    drop(stdin);
    let outcome = server.finish(heapr);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let ids = |name: &str| ids_of(&server.folder.path().join(name), "Thing");
    assert_eq!(ids(&first).len(), 2000);
    assert_eq!(ids(&first), ids(&second));
    server.wait_until_closed();
}

#[test]
fn the_last_few_are_kept() {
    if !has_node() {
        return;
    }
    let server = Program::server(10);
    std::fs::write(server.folder.path().join("Heap.of.somebody.else"), "").unwrap();
    let pid = server.pid().to_string();
    let outcome = server.heapr(&["snapshot", "every", "1", &pid, "--count", "4", "--keep", "2", "-q"]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    let mut kept: Vec<_> = outcome.stdout.lines().skip(2).map(str::to_owned).collect();
    assert_eq!(kept.len(), 2);
    kept.push("Heap.of.somebody.else".into());
    assert_eq!(server.heap_files(), kept);
    server.wait_until_closed();
}

#[test]
fn a_heap_that_passes_a_size_is_taken_once() {
    if !has_node() {
        return;
    }
    let script = "
        globalThis.kept = [];
        console.log('port 0');
        setTimeout(() => { for (let i = 0; i < 400000; i++) kept.push({ i }); }, 2500);
        setTimeout(() => process.exit(0), 9000);";
    let program = Program::node(&["--inspect-port=0"], script, &[]);
    let pid = program.pid().to_string();
    let outcome = program.heapr(&["snapshot", "every", "1", &pid, "--at-heap", "12M", "-q"]);
    assert_eq!(outcome.stdout.lines().count(), 1, "{outcome:?}");
    let path = program.folder.path().join(outcome.stdout.trim_end());
    assert!(path.metadata().unwrap().len() > 12 << 20);
}

#[test]
fn a_process_started_for_it_writes_snapshots_on_a_signal() {
    if !has_node() {
        return;
    }
    let server =
        Program::node(&["--heapsnapshot-signal=SIGUSR2"], crate::node_server::SERVER, &[("OBJECTS", "3000")]);
    let pid = server.pid().to_string();
    let first =
        server.heapr(&["snapshot", "take", "--signal", "SIGUSR2", &pid, "-o", "first.heapsnapshot", "-q"]);
    assert_eq!((first.status, first.stderr.as_str()), (0, ""));
    let second = server.heapr(&["snapshot", "take", "--signal", "USR2", &pid, "-q"]);
    assert_eq!((second.status, second.stderr.as_str()), (0, ""));
    let ids = |name: &str| ids_of(&server.folder.path().join(name.trim_end()), "Thing");
    assert_eq!(ids(&first.stdout).len(), 3000);
    // Without an inspector session, V8 does not forget the ids.
    assert_eq!(ids(&first.stdout), ids(&second.stdout));
    assert_eq!(server.heap_files(), [second.stdout.trim_end()]);
    assert_eq!(server.listening(), [server.port()]);
}

#[test]
fn a_process_that_wants_to_end_is_let_go() {
    if !has_node() {
        return;
    }
    // The program's work ends soon after the file exists; heapr's earlier requests come first.
    let script = "console.log('ready'); let seen = 0; const look = setInterval(() => \
                  require('fs').existsSync('over') && ++seen === 50 && clearInterval(look), 10);";
    for arguments in [
        &["snapshot", "every", "600", "-q"][..],
        &["snapshot", "take", "--again", "-q"],
        &["node", "sample", "-d", "600", "-q"],
    ] {
        let mut program = Program::node(&["--inspect-port=0"], script, &[]);
        let pid = program.pid().to_string();
        let mut heapr = program.spawn_heapr(&[arguments, &[pid.as_str()]].concat());
        let stdin = heapr.stdin.take();
        program.wait_for_partial_file();
        if arguments[0] == "snapshot" {
            heapr_testkit::wait_until("the first snapshot is whole", || {
                program.heap_files().iter().any(|name| !name.starts_with('.')).then_some(())
            });
        }
        std::fs::write(program.folder.path().join("over"), "").unwrap();
        heapr_testkit::wait_until("the program ends", || (!program.is_alive()).then_some(()));
        let outcome = program.finish(heapr);
        drop(stdin);
        assert_eq!(outcome.status, 0, "{arguments:?}: {outcome:?}");
        assert_eq!(outcome.stdout.lines().count(), 1, "{arguments:?}: {outcome:?}");
    }
}

#[test]
fn a_prepared_process_keeps_its_ids_from_one_command_to_the_next() {
    if !has_node() {
        return;
    }
    for working_directory in ["", "process.chdir('/proc/self');"] {
        let script = format!("{working_directory} {}", crate::node_server::SERVER);
        let mut server = Program::node(&["--inspect-port=0"], &script, &[("OBJECTS", "1000")]);
        let pid = server.pid().to_string();
        let prepared = server.heapr(&["node", "prepare", "-q", &pid]);
        assert_eq!((prepared.status, prepared.stderr.as_str()), (0, ""));
        server.wait_until_closed();
        let names = [(); 3].map(|()| {
            let outcome = server.heapr(&["snapshot", "take", "-q", &pid]);
            assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
            outcome.stdout.trim_end().to_owned()
        });
        let ids = names.each_ref().map(|name| ids_of(&server.folder.path().join(name), "Thing"));
        assert_eq!(ids[0].len(), 1000);
        assert!(ids[0] == ids[1] && ids[1] == ids[2]);
        assert_eq!(server.listening(), [server.port()]);
        let again = server.heapr(&["node", "prepare", "-q", &pid]);
        assert!(again.stderr.contains("has a handler for SIGUSR2 already"), "{}", again.stderr);
        assert!(server.is_alive());
    }
}
