//! A POST over HTTP/1.1 without TLS.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::answer::Answer;
use super::url::Url;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Bytes of an answer that are shown if it is a refusal.
pub(super) const SHOWN_BYTES: u64 = 500;

pub(super) fn post(url: &Url, headers: &[(String, String)], body: &[u8]) -> Answer {
    let host = url.host.trim_start_matches('[').trim_end_matches(']');
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, url.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
            Ok(stream) => return exchange(stream, url, headers, body),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn exchange(stream: TcpStream, url: &Url, headers: &[(String, String)], body: &[u8]) -> Answer {
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    stream.set_write_timeout(Some(ANSWER_LIMIT))?;
    let path = if url.path.is_empty() { "/" } else { &url.path };
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: heapr/{}\r\nContent-Length: {}\r\nConnection: close\r\n",
        url.host,
        url.port,
        env!("CARGO_PKG_VERSION"),
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    let mut out = &stream;
    let sent = out.write_all(head.as_bytes()).and_then(|()| out.write_all(body));
    // A server that refuses may answer before it has read everything.
    let mut answer = BufReader::new((&stream).take(64 << 10));
    let mut line = String::new();
    let read = answer.read_line(&mut line);
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let Some(status) = status.filter(|_| line.starts_with("HTTP/1.")) else {
        sent?;
        read?;
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is none of HTTP"));
    };
    let mut length = None;
    loop {
        line.clear();
        if answer.read_line(&mut line).unwrap_or(0) <= 2 {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<u64>().ok();
        }
    }
    let mut text = Vec::new();
    let _ = answer.take(length.unwrap_or(SHOWN_BYTES).min(SHOWN_BYTES)).read_to_end(&mut text);
    Ok((status, String::from_utf8_lossy(&text).trim().to_owned()))
}
