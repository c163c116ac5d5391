//! The one request that is needed: a POST over HTTP/1.1, answered or not.
//!
//! Without TLS: the packages' program has no room for it. An engine that asks for it is reached by
//! a proxy or a collector on this host.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Of an answer, what is shown if it is a refusal.
const SHOWN_BYTES: u64 = 500;

/// Where something is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    host: String,
    port: u16,
    /// Without a slash at its end.
    path: String,
}

impl Url {
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => bail!(
                "{text}: heapr speaks no TLS: name a proxy or a collector on this host (http://127.0.0.1:…)"
            ),
            _ => bail!("{text} is no address: http://HOST:PORT[/PATH]"),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().with_context(|| format!("{text}: {port} is no port"))?)
            }
            _ => (authority, 80),
        };
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        ensure!(!host.is_empty() && !host.contains('@') && is_plain(rest), "{text} is no address");
        Ok(Self { host: host.to_owned(), port, path: path.trim_end_matches('/').to_owned() })
    }

    pub(super) fn join(&self, path: &str) -> Self {
        Self { path: format!("{}{path}", self.path), ..self.clone() }
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}:{}{}", self.host, self.port, self.path)
    }
}

/// What became of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    Taken,
    /// It may be taken later.
    Later(String),
    /// It will never be taken.
    Refused(String),
}

/// Sends a body.
pub(super) fn post(url: &Url, headers: &[(String, String)], body: &[u8]) -> Outcome {
    match try_post(url, headers, body) {
        Ok((status, _)) if (200..300).contains(&status) => Outcome::Taken,
        Ok((status, text)) => {
            let said = format!("{url} answers {status}{}{text}", if text.is_empty() { "" } else { ": " });
            if status == 408 || status == 429 || status >= 500 && status != 501 {
                Outcome::Later(said)
            } else {
                Outcome::Refused(said)
            }
        }
        Err(error) => Outcome::Later(format!("{url}: {error}")),
    }
}

fn try_post(url: &Url, headers: &[(String, String)], body: &[u8]) -> io::Result<(u16, String)> {
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

fn exchange(
    stream: TcpStream,
    url: &Url,
    headers: &[(String, String)],
    body: &[u8],
) -> io::Result<(u16, String)> {
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
    // Who refuses may answer before it has read everything.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_others_refused() {
        let url = |text| Url::parse(text).map(|url| url.join("/x").to_string());
        assert_eq!(url("http://a").unwrap(), "http://a:80/x");
        assert_eq!(url("http://127.0.0.1:4040/p/").unwrap(), "http://127.0.0.1:4040/p/x");
        assert_eq!(url("http://[::1]:99").unwrap(), "http://[::1]:99/x");
        assert!(url("https://a").unwrap_err().to_string().contains("no TLS"));
        for wrong in ["a:1", "http://", "http://a:b", "http://u@h", "http://a b"] {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }
}
