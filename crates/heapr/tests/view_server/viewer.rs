//! Folder with sessions of its own, and `heapr view` running in it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use heapr_testkit::LIMIT;
use serde_json::{Value, json};

/// Folder whose sessions are ended with it.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["-k", "1", &LIMIT.as_secs().to_string(), env!("CARGO_BIN_EXE_heapr")])
            .args(words)
            .env("HEAPR_RUNTIME_DIR", self.folder.path())
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs heapr, which must succeed. Its output goes to files, because a program that it starts
    /// may keep a pipe open.
    #[track_caller]
    pub(crate) fn heapr(&self, words: &[&str]) -> String {
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap();
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| folder.path().join(name));
        let mut command = self.command(words);
        command.stdout(fs::File::create(&stdout).unwrap()).stderr(fs::File::create(&stderr).unwrap());
        let status = command.status().unwrap();
        assert!(status.success(), "{words:?}: {status}: {}", fs::read_to_string(&stderr).unwrap());
        fs::read_to_string(&stdout).unwrap()
    }

    /// Returns the output of a command with `--format json`.
    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.heapr(&[words, &["--format", "json"]].concat())).unwrap()
    }

    /// Compiles a C program.
    pub(crate) fn compile(&self, name: &str, source: &str) -> String {
        let (program, text) = (self.path(name), self.path(&format!("{name}.c")));
        fs::write(&text, source).unwrap();
        let done = Command::new("cc").args(["-g", "-O1", "-o"]).arg(&program).arg(&text).status().unwrap();
        assert!(done.success());
        program.to_str().unwrap().to_owned()
    }

    pub(crate) fn view(&self, words: &[&str]) -> Viewer {
        let mut child = Command::new(env!("CARGO_BIN_EXE_heapr"))
            .args(["view", "--no-open"])
            .args(words)
            .env("HEAPR_RUNTIME_DIR", self.folder.path())
            .env("XDG_RUNTIME_DIR", self.folder.path())
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some((address, token)) =
            line.trim().strip_prefix("http://").and_then(|url| url.split_once("/?token="))
        else {
            let _ = child.wait();
            panic!("no address was printed: {line:?}")
        };
        Viewer { address: address.to_owned(), token: token.to_owned(), child }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let names: Vec<String> = fs::read_dir(self.path("heapr"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".sock").map(str::to_owned))
            .collect();
        for name in names {
            let _ = self.command(&["cancel", &name]).output();
        }
    }
}

/// Server that ends with this value.
pub(crate) struct Viewer {
    address: String,
    token: String,
    pub(crate) child: Child,
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Viewer {
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

/// Whether a file exists.
pub(crate) fn exists(path: &Path) -> bool {
    path.exists()
}
