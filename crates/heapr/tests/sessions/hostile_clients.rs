//! Hostile clients of a session's socket: the recording and the other clients continue.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use crate::stage::Stage;

fn connect(stage: &Stage) -> UnixStream {
    let stream = UnixStream::connect(stage.path("heapr/target.sock")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn answer(stage: &Stage, request: &[u8]) -> String {
    let mut stream = connect(stage);
    // The other side may close before it has read all.
    let _ = stream.write_all(request);
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

#[test]
fn garbage_is_answered_and_harms_nothing() {
    let stage = Stage::new();
    stage.start_steady("target", &["-o", "t.heapr"]).ok();
    let huge = [b"{\"heapr\":1,\"request\":{\"mark\":\"".as_slice(), &vec![b'x'; 1 << 20]].concat();
    let cases: [(&[u8], &str); 8] = [
        (b"\n", ""),
        (b"GET / HTTP/1.1\r\n\r\n", ""),
        (b"{}\n", ""),
        (b"{\"heapr\":2,\"request\":\"status\"}\n", "another version"),
        (b"{\"heapr\":1,\"request\":\"explode\"}\n", "cannot be understood"),
        (b"{\"heapr\":1,\"request\":{\"update\":{\"add_pids\":[-1]}}}\n", "cannot be understood"),
        (b"\xff\xfe\x00\n", ""),
        (&huge, "longer than"),
    ];
    for (request, word) in cases {
        let answer = answer(&stage, request);
        assert!(
            answer.contains(word),
            "{:?}: {answer}",
            String::from_utf8_lossy(&request[..request.len().min(60)])
        );
    }
    // Deeply nested arrays: refused by the parser's own bound.
    answer(&stage, &[vec![b'['; 200_000], b"\n".to_vec()].concat());
    assert_eq!(stage.status("target")["state"], "recording");
    assert_eq!(stage.status("target")["marker_count"], 0);
}

/// Whether the other side has neither answered nor closed.
fn is_open(stream: &UnixStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = (&mut &*stream).read(&mut [0]);
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn clients_that_say_nothing_keep_neither_the_recorder_nor_the_others_waiting() {
    let stage = Stage::new();
    stage.start_steady("target", &["-o", "t.heapr"]).ok();
    // On a busy machine the connections may be closed before the events have come; then the test
    // proves nothing.
    let silent = heapr_testkit::wait_until("events come while nobody is given up", || {
        let mut silent: Vec<UnixStream> = (0..8).map(|_| connect(&stage)).collect();
        silent[0].write_all(b"{\"heapr\":1,").unwrap();
        let before = stage.status("target");
        let after = stage.wait_for("target", "more events", |status| {
            status["event_count"].as_u64() > before["event_count"].as_u64().map(|count| count + 5000)
        });
        assert_eq!(after["events_lost"], 0);
        silent.iter().all(is_open).then_some(silent)
    });
    // Excess connections are closed; when the others have gone there is room again.
    let more: Vec<UnixStream> = (0..100).map(|_| connect(&stage)).collect();
    heapr_testkit::wait_until("those beyond the limit are closed", || {
        (!more.iter().all(is_open)).then_some(())
    });
    drop(more);
    drop(silent);
    stage.wait_for_answer("target");
}

#[test]
fn a_client_that_does_not_take_its_answer_blocks_nobody() {
    let stage = Stage::new();
    stage.start_steady("target", &["-o", "t.heapr"]).ok();
    let mut deaf: Vec<UnixStream> = (0..6)
        .map(|_| {
            let mut stream = connect(&stage);
            stream.write_all(b"{\"heapr\":1,\"request\":\"status\"}\n").unwrap();
            stream
        })
        .collect();
    stage.status("target");
    // Their answers are still unread.
    for stream in &mut deaf {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.contains("recording"), "{text}");
    }
}

#[test]
fn another_user_is_not_heard() {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|facts| {
        use std::os::unix::fs::MetadataExt as _;
        facts.uid() == 0
    });
    if !is_root {
        heapr_testkit::not_run("only root can become another user");
        return;
    }
    let stage = Stage::new();
    stage.start_steady("target", &["-o", "t.heapr"]).ok();
    // The folder is open to all, as by mistake: the socket itself refuses.
    for (path, mode) in [("", 0o711), ("heapr", 0o711), ("heapr/target.sock", 0o777)] {
        std::fs::set_permissions(stage.path(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let script = "import socket, sys\n\
        s = socket.socket(socket.AF_UNIX); s.settimeout(15); s.connect(sys.argv[1])\n\
        try:\n    s.sendall(b'{\"heapr\":1,\"request\":\"cancel\"}\\n')\n    print(len(s.recv(100)))\n\
        except (BrokenPipeError, ConnectionResetError):\n    print(0)\n";
    let asked = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script])
        .arg(stage.path("heapr/target.sock"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&asked.stdout), "0\n", "{}", String::from_utf8_lossy(&asked.stderr));
    for (path, mode) in [("heapr", 0o700), ("", 0o700)] {
        std::fs::set_permissions(stage.path(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    assert_eq!(stage.status("target")["state"], "recording");
}
