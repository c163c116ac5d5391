//! An inspector in this very process, whose answers a test decides.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use heapr_inspector::Process;
use tungstenite::{Message, WebSocket};

/// What a test does with the connection: the request's number, its method, and the socket to answer
/// on.
pub(crate) type Answer = fn(u64, &str, &mut WebSocket<TcpStream>);

/// Starts it, and returns this process as one that was started with `--inspect=PORT`.
pub(crate) fn start(list: &'static str, answer: Answer) -> Process {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || serve(stream.unwrap(), list, answer));
        }
    });
    let mut process = Process::examine(std::process::id()).unwrap();
    process.arguments = vec!["node".into(), format!("--inspect={port}")];
    process
}

fn serve(mut stream: TcpStream, list: &str, answer: Answer) {
    let mut head = [0; 2048];
    let read = stream.peek(&mut head).unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..read]).into_owned();
    let body = match head.split(' ').nth(1) {
        Some("/json/version") => r#"{"Browser":"node.js/v20.1.0","Protocol-Version":"1.1"}"#,
        Some("/json/list") => list,
        _ => return talk(stream, answer),
    };
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
