//! A stopped process: the user is told so, and the process gets no signal.

use rustix::process::{Pid, Signal, kill_process};

use crate::node_server::{Program, has_node, request};

#[test]
fn a_stopped_process_gets_no_signal_and_opens_no_port_later() {
    if !has_node() {
        return;
    }
    let server = Program::server(10);
    let (pid, port) = (server.pid(), server.port());
    let send = |signal| kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
    send(Signal::STOP);
    let process = heapr_inspector::Process::examine(pid).unwrap();
    while process.standstill().is_none() {
        std::thread::yield_now();
    }
    let outcome = server.heapr(&["snapshot", "take", &pid.to_string()]);
    send(Signal::CONT);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""));
    assert!(outcome.stderr.contains("is stopped"), "{}", outcome.stderr);
    // The process continues; a pending signal would show.
    assert!(request(port).contains("hello"));
    assert_eq!(server.listening(), [port]);
}
