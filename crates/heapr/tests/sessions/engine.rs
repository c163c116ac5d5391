//! Engine that accepts profiles: an HTTP server with given answers that saves the requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Request that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    pub(crate) path: String,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
    pub(crate) status: u16,
}

impl Taken {
    pub(crate) fn has_header(&self, line: &str) -> bool {
        self.headers.lines().any(|header| header.eq_ignore_ascii_case(line))
    }
}

/// HTTP server in a thread that ends with the test.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub(crate) url: String,
    taken: Arc<Mutex<Vec<Taken>>>,
}

impl Engine {
    /// Starts to listen; the first answers have these statuses, all others 200.
    pub(crate) fn start(first: &'static [u16]) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").unwrap(), first)
    }

    pub(crate) fn listen(listener: TcpListener, first: &'static [u16]) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let taken = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&taken);
        std::thread::spawn(move || {
            let mut statuses = first.iter().copied();
            for stream in listener.incoming().flatten() {
                let status = statuses.next().unwrap_or(200);
                if let Some(request) = read(&stream, status) {
                    kept.lock().unwrap().push(request);
                }
            }
        });
        Self { url, taken }
    }

    pub(crate) fn taken(&self) -> Vec<Taken> {
        self.taken.lock().unwrap().clone()
    }
}

fn read(mut stream: &TcpStream, status: u16) -> Option<Taken> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().ok()?;
        }
        headers += line.trim_end();
        headers.push('\n');
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let text = "told so";
    let answer =
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len());
    stream.write_all(answer.as_bytes()).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    Some(Taken { path, headers, body, status })
}
