//! HTTP side of the inspector: `/json/list` and `/json/version`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::error::{Error, Result};

/// Largest time for an answer. The inspector answers from a thread of its own, even while the main
/// thread is busy.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Largest size of an answer in bytes. Chrome lists every tab with its title and URL.
const ANSWER_BYTES_MAX: u64 = 8 << 20;

/// Returns the body of a successful GET request. The Host header is the address itself, because
/// inspectors refuse names other than localhost.
pub(crate) fn get(mut stream: TcpStream, address: SocketAddr, path: &str) -> Result<Vec<u8>> {
    let not = |what: String| Error::NotAnInspector { address, what };
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    );
    stream.set_read_timeout(Some(ANSWER_TIME)).map_err(|error| not(error.to_string()))?;
    stream.set_write_timeout(Some(ANSWER_TIME)).map_err(|error| not(error.to_string()))?;
    stream.write_all(request.as_bytes()).map_err(|error| not(error.to_string()))?;
    let started = Instant::now();
    let mut answer = Vec::new();
    let mut piece = [0_u8; 4096];
    let mut limited = stream.take(ANSWER_BYTES_MAX);
    loop {
        match limited.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
            // Some inspectors leave the connection open; the received text counts.
            Err(error) if answer.is_empty() => return Err(not(format!("no answer to GET {path}: {error}"))),
            Err(_) => break,
        }
        if is_whole(&answer) {
            break;
        }
        if started.elapsed() >= ANSWER_TIME {
            return Err(not(format!("the answer to GET {path} does not end")));
        }
    }
    let (head, body) = split(&answer).ok_or_else(|| not("no HTTP".into()))?;
    let status = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    if !status.starts_with(b"HTTP/1.") || status.get(9..12) != Some(b"200") {
        return Err(not(format!("GET {path}: {}", String::from_utf8_lossy(&status[..status.len().min(80)]))));
    }
    Ok(body[..content_length(head).unwrap_or(body.len()).min(body.len())].to_vec())
}

fn is_whole(answer: &[u8]) -> bool {
    split(answer).is_some_and(|(head, body)| content_length(head).is_some_and(|length| body.len() >= length))
}

fn split(answer: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memmem::find(answer, b"\r\n\r\n")?;
    Some((&answer[..end], &answer[end + 4..]))
}

fn content_length(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head).ok()?;
    head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn answer_of(answer: &'static [u8]) -> Result<Vec<u8>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let read = stream.read(&mut request).unwrap();
            stream.write_all(answer).unwrap();
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        let body = get(TcpStream::connect(address).unwrap(), address, "/json/list");
        assert!(server.join().unwrap().contains(&format!("\r\nHost: {address}\r\n")));
        body
    }

    #[test]
    fn the_body_ends_where_the_header_says() {
        let body = answer_of(b"HTTP/1.0 200 OK\r\ncontent-LENGTH: 4\r\n\r\n[{}]and more").unwrap();
        assert_eq!(body, b"[{}]");
        assert_eq!(answer_of(b"HTTP/1.1 200 OK\r\n\r\n[]").unwrap(), b"[]");
    }

    #[test]
    fn other_answers_are_no_inspector() {
        for answer in [&b""[..], b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"HTTP/1.1 2"] {
            assert!(matches!(answer_of(answer), Err(Error::NotAnInspector { .. })));
        }
    }
}
