//! `heapr view`, running in a stage.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use heapr_testkit::{LIMIT, Stage};
use serde_json::{Value, json};

/// Server that ends with this value.
pub(crate) struct Viewer {
    address: String,
    token: String,
    /// Place in the page: the text after `#`.
    pub(crate) place: String,
    pub(crate) child: Child,
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Viewer {
    /// Starts `heapr view` in a stage.
    pub(crate) fn start(stage: &Stage, words: &[&str]) -> Self {
        let words = [&["view", "--no-open"], words].concat();
        let mut child = stage.command(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some((address, token)) =
            line.trim().strip_prefix("http://").and_then(|url| url.split_once("/?token="))
        else {
            let _ = child.wait();
            panic!("no address was printed: {line:?}")
        };
        let (token, place) = token.split_once('#').unwrap_or((token, ""));
        Self { address: address.to_owned(), token: token.to_owned(), place: place.to_owned(), child }
    }

    fn send(&self, method: &str, name: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        write!(
            stream,
            "{method} /api/{name} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a whole answer");
        let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
        (status, serde_json::from_slice(&answer[end + 4..]).unwrap())
    }

    /// Returns status and answer, whatever they are.
    pub(crate) fn reply(&self, name: &str, body: &Value) -> (u16, Value) {
        self.send("POST", name, &body.to_string())
    }

    /// Returns the answer of a request that must succeed.
    #[track_caller]
    pub(crate) fn ask(&self, name: &str, body: Value) -> Value {
        let (status, answer) = self.reply(name, &body);
        assert_eq!(status, 200, "{name} {body}: {answer}");
        answer
    }

    /// Returns the files.
    pub(crate) fn files(&self) -> Value {
        let (status, answer) = self.send("GET", "files", "");
        assert_eq!(status, 200, "{answer}");
        answer["files"].clone()
    }

    /// Waits until the first file is as wanted.
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        heapr_testkit::wait_until(what, || Some(self.files()[0].clone()).filter(|file| is_it(file)))
    }

    /// Returns the totals of the first file's report by stacks, without a filter.
    #[track_caller]
    pub(crate) fn totals(&self) -> Value {
        self.ask("report", json!({"file": 0, "limit": 1}))["totals"].clone()
    }
}

/// Reduces rows of an answer or of the command line to the fields that both have.
pub(crate) fn common(rows: &Value, fields: &[&str]) -> Vec<Value> {
    let rows = rows.as_array().expect("rows");
    rows.iter()
        .map(|row| fields.iter().map(|&field| (field.to_owned(), row[field].clone())).collect::<Value>())
        .collect()
}
