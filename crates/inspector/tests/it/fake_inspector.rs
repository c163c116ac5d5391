//! Inspector in the test process, with answers that a test chooses.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use heapr_inspector::Process;
use tungstenite::{Message, WebSocket};

/// Test's reaction to a request: the request's number, its method, and the socket for the answer.
pub(crate) type Answer = fn(u64, &str, &mut WebSocket<TcpStream>);

/// Starts the inspector. Returns this process as if it had been started with `--inspect=PORT`.
pub(crate) fn start(list: &'static str, answer: Answer) -> Process {
    listen(move |stream, path| match path {
        "/json/version" => answer_with(stream, VERSION),
        "/json/list" => answer_with(stream, list),
        _ => talk(stream, answer),
    })
}

/// Starts an inspector with a valid list; `talk` handles its connection.
pub(crate) fn start_raw(talk: fn(TcpStream)) -> Process {
    const LIST: &str = r#"[{"id":"a","type":"node","webSocketDebuggerUrl":"ws://h/a"}]"#;
    listen(move |stream, path| match path {
        "/json/version" => answer_with(stream, VERSION),
        "/json/list" => answer_with(stream, LIST),
        _ => talk(stream),
    })
}

/// Starts an inspector that answers every request for its list with `list`.
pub(crate) fn start_with_list(list: &'static [u8]) -> Process {
    listen(move |mut stream, path| match path {
        "/json/version" => answer_with(stream, VERSION),
        _ => {
            let _ = stream.read(&mut [0; 2048]);
            let _ = stream.write_all(list);
        }
    })
}

/// Starts an inspector whose list arrives byte by byte and never ends.
pub(crate) fn start_dripping_list() -> Process {
    listen(|mut stream, path| match path {
        "/json/version" => answer_with(stream, VERSION),
        _ => {
            let _ = stream.read(&mut [0; 2048]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n[");
            while stream.write_all(b" ").is_ok() {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    })
}

/// Answers the request for a WebSocket.
pub(crate) fn shake_hands(stream: &mut TcpStream) {
    let mut head = [0; 2048];
    let read = stream.read(&mut head).unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..read]).into_owned();
    let key = head.split("\r\n").find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap_or("");
    let accept = tungstenite::handshake::derive_accept_key(key.as_bytes());
    let _ = write!(
        stream,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
}

const VERSION: &str = r#"{"Browser":"node.js/v20.1.0","Protocol-Version":"1.1"}"#;

fn listen(serve: impl Fn(TcpStream, &str) + Copy + Send + 'static) -> Process {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let stream = stream.unwrap();
                let mut head = [0; 2048];
                let read = stream.peek(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                serve(stream, head.split(' ').nth(1).unwrap_or(""));
            });
        }
    });
    let mut process = Process::examine(std::process::id()).unwrap();
    process.arguments = vec!["node".into(), format!("--inspect={port}")];
    process
}

fn answer_with(mut stream: TcpStream, body: &str) {
    let _ = stream.read(&mut [0; 2048]);
    let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
}

fn talk(stream: TcpStream, answer: Answer) {
    let Ok(mut socket) = tungstenite::accept(stream) else { return };
    while let Ok(message) = socket.read() {
        let Message::Text(text) = message else { continue };
        let request: serde_json::Value = serde_json::from_str(&text).unwrap();
        answer(request["id"].as_u64().unwrap(), request["method"].as_str().unwrap(), &mut socket);
    }
}

/// Sends one message.
pub(crate) fn send(socket: &mut WebSocket<TcpStream>, text: impl Into<String>) {
    let _ = socket.send(Message::text(text.into()));
}

/// Answers with an empty result.
pub(crate) fn ok(id: u64, socket: &mut WebSocket<TcpStream>) {
    send(socket, format!(r#"{{"id":{id},"result":{{}}}}"#));
}
