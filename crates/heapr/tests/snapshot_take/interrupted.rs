//! A capture that is interrupted leaves neither a file nor an open port.

use std::process::Command;

use crate::node_server::{Program, has_node, request};

fn send(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// Starts a capture, and waits until its file is being written.
fn capture_under_way(server: &Program) -> std::process::Child {
    let heapr = server.spawn_heapr(&["snapshot", "take", &server.pid().to_string()]);
    server.wait_for_partial_file();
    heapr
}

#[test]
fn an_interrupt_removes_the_file_and_closes_the_port() {
    if !has_node() {
        return;
    }
    for signal in ["-INT", "-TERM", "-HUP"] {
        let server = Program::server(150_000);
        let heapr = capture_under_way(&server);
        send(signal, heapr.id());
        let outcome = server.finish(heapr);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(outcome.stderr.contains("heapr: stopped"), "{}", outcome.stderr);
        assert_eq!(server.heap_files(), [""; 0]);
        server.wait_until_closed();
        assert!(request(server.port()).ends_with("hello"));
    }
}

#[test]
fn a_process_that_dies_meanwhile_is_told_of() {
    if !has_node() {
        return;
    }
    let server = Program::server(150_000);
    let heapr = capture_under_way(&server);
    send("-KILL", server.pid());
    let outcome = server.finish(heapr);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("has ended meanwhile"), "{}", outcome.stderr);
    assert_eq!(server.heap_files(), [""; 0]);
}

#[test]
fn a_disk_without_room_is_told_and_the_port_is_closed() {
    if !has_node() {
        return;
    }
    let server = Program::server(1000);
    let outcome =
        server.heapr(&["snapshot", "take", &server.pid().to_string(), "-o", "/dev/shm/no/such/folder/x"]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("cannot write /dev/shm/no/such/folder/x"), "{}", outcome.stderr);
    server.wait_until_closed();
}
