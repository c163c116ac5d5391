//! Tests that inspectors that lie, stop, or send nonsense end a capture with an error, and nothing
//! else.

use std::io::{self, Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use heapr_inspector::{Closing, Error, Inspector, OpenOptions, Process, SnapshotOptions, TakenSnapshot};

use crate::fake_inspector::{
    Answer, ok, send, shake_hands, start, start_dripping_list, start_raw, start_with_list,
};

const ONE: &str =
    r#"[{"id":"a","type":"node","url":"file:///a.js","webSocketDebuggerUrl":"ws://evil.example:1/a"}]"#;

fn open(process: &Process) -> heapr_inspector::Result<Inspector> {
    let options = OpenOptions { wait: Duration::from_secs(1), ..OpenOptions::default() };
    Inspector::open(process, &options, &AtomicBool::new(false))
}

fn take(answer: Answer) -> (heapr_inspector::Result<TakenSnapshot>, Vec<u8>) {
    let process = start(ONE, answer);
    let mut inspector = open(&process).unwrap();
    let mut out = Vec::new();
    let never = AtomicBool::new(false);
    let taken = inspector.take_snapshot(None, SnapshotOptions::default(), &mut out, &mut |_| {}, &never);
    assert_eq!(inspector.close(), Closing::WasOpenBefore);
    (taken, out)
}

fn chunk(text: &str) -> String {
    let params = serde_json::json!({ "chunk": text });
    serde_json::json!({ "method": "HeapProfiler.addHeapSnapshotChunk", "params": params }).to_string()
}

#[test]
fn chunks_are_written_in_order_and_unescaped() {
    let (taken, out) = take(|id, method, socket| {
        if method == "HeapProfiler.takeHeapSnapshot" {
            send(
                socket,
                r#"{"method":"HeapProfiler.reportHeapSnapshotProgress","params":{"done":1,"total":2}}"#,
            );
            send(socket, r#"{"method":"Something.new","params":{"chunk":7}}"#);
            for number in 0..5000 {
                send(socket, chunk(&format!("line {number} \"é\\\n")));
            }
            send(socket, chunk("]}"));
        }
        ok(id, socket);
    });
    let mut expected: String = (0..5000).map(|number| format!("line {number} \"é\\\n")).collect();
    expected.push_str("]}");
    assert!(out == expected.as_bytes());
    let taken = taken.unwrap();
    assert_eq!(taken.bytes, out.len() as u64);
    assert!(taken.until_first_byte <= taken.pause);
}

#[test]
fn a_snapshot_without_its_end_is_an_error() {
    let (taken, _) = take(|id, method, socket| {
        if method == "HeapProfiler.takeHeapSnapshot" {
            send(socket, chunk("{\"nodes\":[1,2"));
        }
        ok(id, socket);
    });
    assert_eq!(
        taken.unwrap_err().to_string(),
        "the snapshot is not whole: it ends with \"{\\\"nodes\\\":[1,2\""
    );
}

#[test]
fn nonsense_is_told_with_its_start() {
    for nonsense in [
        "<html>",
        "[]",
        r#"{"method":7}"#,
        r#"{"id":-1}"#,
        "{\"method\":\"HeapProfiler.addHeapSnapshotChunk\",\"params\":{\"chunk\":\"\\x\"}}",
    ] {
        // A function pointer cannot capture a text, so the text is in a static.
        static NONSENSE: std::sync::Mutex<&str> = std::sync::Mutex::new("");
        *NONSENSE.lock().unwrap() = nonsense;
        let (taken, _) = take(|id, method, socket| {
            if method == "HeapProfiler.takeHeapSnapshot" {
                let nonsense = *NONSENSE.lock().unwrap();
                send(socket, nonsense);
            }
            ok(id, socket);
        });
        let error = taken.unwrap_err();
        assert!(matches!(error, Error::BadMessage { .. }), "{nonsense}: {error}");
    }
}

#[test]
fn a_connection_that_ends_is_told() {
    let (taken, _) = take(|id, method, socket| {
        if method == "HeapProfiler.takeHeapSnapshot" {
            send(socket, chunk("{"));
            let _ = socket.close(None);
            let _ = socket.flush();
        } else {
            ok(id, socket);
        }
    });
    assert!(matches!(taken, Err(Error::Closed { .. } | Error::Connection { .. })), "{taken:?}");
}

#[test]
fn a_refusal_keeps_the_words_of_the_inspector() {
    let (taken, _) = take(|id, _, socket| {
        send(socket, format!(r#"{{"id":{id},"error":{{"code":-1,"message":"not now"}}}}"#))
    });
    assert_eq!(taken.unwrap_err().to_string(), "the inspector refused HeapProfiler.enable: not now");
}

#[test]
fn silence_ends_when_patience_does() {
    let process = start(ONE, |_, _, _| {});
    let error = heapr_testkit::within_limit("a question without an answer", move || {
        open(&process).unwrap().heap_usage(None, &AtomicBool::new(false)).unwrap_err()
    });
    assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
}

#[test]
fn the_flag_ends_a_snapshot_that_never_ends() {
    let process = start(ONE, |id, method, socket| {
        if method == "HeapProfiler.takeHeapSnapshot" {
            while socket.can_write() && socket.send(tungstenite::Message::text(chunk("1,2,3,"))).is_ok() {}
        } else {
            ok(id, socket);
        }
    });
    let mut inspector = open(&process).unwrap();
    let is_cancelled = AtomicBool::new(false);
    let mut chunks = 0;
    let taken = inspector.take_snapshot(
        None,
        SnapshotOptions::default(),
        &mut io::sink(),
        &mut |_| {
            chunks += 1;
            is_cancelled.store(chunks > 1000, Ordering::Relaxed);
        },
        &is_cancelled,
    );
    assert!(matches!(taken, Err(Error::Cancelled)), "{taken:?}");
}

/// Node crashes if a connection is closed while it sends (see `Connection::finish`).
#[test]
fn a_connection_is_closed_only_when_the_snapshot_that_was_given_up_has_come_to_its_end() {
    use std::sync::atomic::AtomicU32;
    static SENT: AtomicU32 = AtomicU32::new(0);
    const CHUNKS: u32 = 40;
    let process = start(ONE, |id, method, socket| {
        if method == "HeapProfiler.takeHeapSnapshot" {
            for _ in 0..CHUNKS {
                std::thread::sleep(Duration::from_millis(10));
                // The first message to a closed connection succeeds, later ones fail.
                if socket.send(tungstenite::Message::text(chunk("1,2,3,"))).is_err() {
                    return;
                }
                SENT.fetch_add(1, Ordering::Relaxed);
            }
        }
        ok(id, socket);
    });
    let mut inspector = open(&process).unwrap();
    let is_cancelled = AtomicBool::new(false);
    let mut at_once = |_| is_cancelled.store(true, Ordering::Relaxed);
    let options = SnapshotOptions::default();
    let taken = inspector.take_snapshot(None, options, &mut io::sink(), &mut at_once, &is_cancelled);
    assert!(matches!(taken, Err(Error::Cancelled)), "{taken:?}");
    assert!(inspector.is_sending());
    assert!(SENT.load(Ordering::Relaxed) < CHUNKS);
    inspector.close();
    assert_eq!(SENT.load(Ordering::Relaxed), CHUNKS);
}

#[test]
fn a_writer_that_fails_stops_the_capture() {
    let process = start(ONE, |id, method, socket| {
        if method == "HeapProfiler.takeHeapSnapshot" {
            let text = chunk(&"1".repeat(100_000));
            while socket.send(tungstenite::Message::text(text.clone())).is_ok() {}
        } else {
            ok(id, socket);
        }
    });
    let mut inspector = open(&process).unwrap();
    let mut full = [0_u8; 1000];
    let mut sink = &mut full[..];
    let never = AtomicBool::new(false);
    let taken = inspector.take_snapshot(None, SnapshotOptions::default(), &mut sink, &mut |_| {}, &never);
    assert!(matches!(taken, Err(Error::Write { .. })), "{taken:?}");
}

#[test]
fn absurd_sizes_of_a_heap_are_only_numbers() {
    let process = start(ONE, |id, _, socket| {
        send(socket, format!(r#"{{"id":{id},"result":{{"usedSize":1e300,"totalSize":-5}}}}"#));
    });
    let usage = open(&process).unwrap().heap_usage(None, &AtomicBool::new(false)).unwrap();
    assert_eq!((usage.used_bytes, usage.total_bytes), (u64::MAX, 0));
}

#[test]
fn of_two_pages_one_must_be_chosen() {
    const TWO: &str = r#"[
        {"id":"a","type":"page","url":"http://one/","webSocketDebuggerUrl":"ws://h/a"},
        {"id":"b","type":"page","url":"http://two/","webSocketDebuggerUrl":"ws://h/b"},
        {"id":"c","type":"browser_ui","url":"chrome://x","webSocketDebuggerUrl":"ws://h/c"}]"#;
    let process = start(TWO, |_, _, _| {});
    let error = open(&process).unwrap_err().to_string();
    assert!(error.contains("a (http://one/), b (http://two/)") && !error.contains("chrome://x"), "{error}");
    let never = AtomicBool::new(false);
    let chosen = |target: &str| {
        let options = OpenOptions { target: Some(target.to_owned()), ..OpenOptions::default() };
        Inspector::open(&process, &options, &never).map(|inspector| inspector.target().id.clone())
    };
    assert_eq!(chosen("two").unwrap(), "b");
    assert_eq!(chosen("c").unwrap(), "c");
    assert!(matches!(chosen("three"), Err(Error::NoTarget { .. })));
}

#[test]
fn a_program_of_unknown_make_is_asked_on_the_ports_that_it_listens_on() {
    let mut process = start(ONE, |id, _, socket| ok(id, socket));
    let port = process.arguments[1].split_once('=').unwrap().1.to_owned();
    // The port is in the arguments as for workerd, rather than in an option of V8.
    process.arguments = vec!["program".into(), "serve".into(), format!("-i127.0.0.1:{port}")];
    assert_eq!(open(&process).unwrap().address().port().to_string(), port);
}

#[test]
fn targets_without_a_path_are_refused() {
    for list in [
        r#"[{"id":"a","webSocketDebuggerUrl":"nonsense"}]"#,
        r#"[{"id":"a","webSocketDebuggerUrl":"ws://host"}]"#,
        r#"[{"id":"a"}]"#,
        "[]",
        "{}",
    ] {
        let error = open(&start(list, |_, _, _| {})).unwrap_err();
        assert!(matches!(error, Error::NotAnInspector { .. } | Error::NoTarget { .. }), "{list}: {error}");
    }
}

/// Another client of the same port could receive messages about the process. Answers are matched by
/// their numbers alone.
#[test]
fn answers_to_what_was_never_asked_are_passed_over() {
    let (taken, out) = take(|id, method, socket| {
        if method == "HeapProfiler.takeHeapSnapshot" {
            for wrong in [0, id - 1, id + 1, u64::MAX] {
                send(socket, format!(r#"{{"id":{wrong},"result":{{}}}}"#));
                send(socket, format!(r#"{{"id":{wrong},"error":{{"code":-1,"message":"no"}}}}"#));
            }
            send(socket, chunk("{\"strings\":[]}"));
        }
        ok(id, socket);
    });
    taken.unwrap();
    assert_eq!(out, b"{\"strings\":[]}");
}

#[test]
fn a_frame_that_comes_byte_by_byte_does_not_hold_up_its_deadline() {
    let process = start_raw(|mut stream| {
        shake_hands(&mut stream);
        // The frame announces a text of 1 GB, which arrives byte by byte.
        let mut frame = vec![0x81, 127];
        frame.extend_from_slice(&(1_u64 << 30).to_be_bytes());
        let _ = stream.write_all(&frame);
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let error = heapr_testkit::within_limit("an answer that drips", move || {
        open(&process).unwrap().heap_usage(None, &AtomicBool::new(false)).unwrap_err()
    });
    assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
}

#[test]
fn frames_of_more_than_any_message_are_refused_unread() {
    let process = start_raw(|mut stream| {
        shake_hands(&mut stream);
        let mut frame = vec![0x81, 127];
        frame.extend_from_slice(&(1_u64 << 62).to_be_bytes());
        let _ = stream.write_all(&frame);
        let _ = stream.read(&mut [0; 4096]);
        std::thread::park();
    });
    let error = open(&process).unwrap().heap_usage(None, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, Error::Connection { .. }), "{error}");
}

#[test]
fn a_handshake_that_drips_ends() {
    let process = start_raw(|mut stream| {
        while stream.write_all(b"H").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let error = heapr_testkit::within_limit("a handshake that drips", move || open(&process).unwrap_err());
    assert!(matches!(error, Error::Connection { .. }), "{error}");
}

/// The address of the list is known, so redirects are not followed.
#[test]
fn redirects_and_lists_without_an_end_are_no_inspector() {
    for answer in [
        &b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/json/list\r\nContent-Length: 0\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n[",
    ] {
        let error = open(&start_with_list(answer)).unwrap_err();
        assert!(matches!(error, Error::NotAnInspector { .. } | Error::NoTarget { .. }), "{error}");
    }
    let endless = start_dripping_list();
    let error = heapr_testkit::within_limit("a list that drips", move || open(&endless).unwrap_err());
    assert!(matches!(error, Error::NotAnInspector { .. }), "{error}");
}
