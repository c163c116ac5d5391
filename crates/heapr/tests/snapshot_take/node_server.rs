//! Node program under test, and heapr run on it.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use heapr_testkit::{LIMIT, Outcome, wait_until};

use crate::command;

/// Server that keeps `objects` objects, answers every request with `hello`, and prints the port on
/// which it listens.
pub(crate) const SERVER: &str = "
    class Thing { constructor(i) { this.name = 'thing ' + i; this.inner = { i }; } }
    globalThis.kept = Array.from({ length: +process.env.OBJECTS || 0 }, (_, i) => new Thing(i));
    const server = require('http').createServer((request, response) => response.end('hello'));
    server.listen(0, '127.0.0.1', () => console.log('port ' + server.address().port));
";

/// Whether Node is installed.
pub(crate) fn has_node() -> bool {
    let has =
        Command::new("node").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !has {
        heapr_testkit::not_run("there is no node in the path");
    }
    has
}

/// Running program, killed when it is dropped.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) folder: tempfile::TempDir,
}

impl Program {
    /// Starts Node on a script, and waits until it has written a line.
    pub(crate) fn node(options: &[&str], script: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new("node");
        command.args(options).arg("app.js").envs(environment.iter().copied());
        Self::start(command, script)
    }

    /// Starts a command in a folder with the script as `app.js`.
    pub(crate) fn start(mut command: Command, script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("app.js"), script).unwrap();
        let out = File::create(folder.path().join("out")).unwrap();
        let child = command
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .unwrap();
        let mut program = Self { child, folder };
        program.wait_for_output("\n");
        program
    }

    /// Starts a server with this many objects, whose inspector may take any port.
    pub(crate) fn server(objects: u32) -> Self {
        Self::node(&["--inspect-port=0"], SERVER, &[("OBJECTS", &objects.to_string())])
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn output(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("out")).unwrap()
    }

    /// Waits until the program has printed `text`.
    pub(crate) fn wait_for_output(&mut self, text: &str) {
        wait_until(&format!("it says {text:?}"), || {
            assert!(self.is_alive(), "{}", self.output());
            self.output().contains(text).then_some(())
        });
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Returns the port on which the program said it listens.
    pub(crate) fn port(&self) -> u16 {
        let output = self.output();
        let port = output.lines().find_map(|line| line.strip_prefix("port ")?.parse().ok());
        port.unwrap_or_else(|| panic!("no port in {output}"))
    }

    /// Returns the ports on which the program really listens.
    pub(crate) fn listening(&self) -> Vec<u16> {
        let examined = heapr_inspector::Process::examine(self.pid());
        let process = examined.unwrap_or_else(|error| panic!("{error}; {}\n{}", self.fate(), self.output()));
        process.listeners().unwrap().iter().map(|listener| listener.bound_to.port()).collect()
    }

    /// Describes how the program ended, if it does within a second.
    fn fate(&self) -> String {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        std::thread::sleep(Duration::from_secs(1));
        let pid = Pid::from_raw(self.pid().cast_signed()).unwrap();
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(pid), options) {
            Ok(Some(status)) => format!(
                "it ended with status {:?}, signal {:?}",
                status.exit_status(),
                status.terminating_signal()
            ),
            other => format!("it has not ended: {other:?}"),
        }
    }

    /// Waits until the program listens only on its own port: its thread may be busy until then.
    pub(crate) fn wait_until_closed(&self) {
        wait_until("only its own port is open", || (self.listening() == [self.port()]).then_some(()));
    }

    /// Runs heapr with these arguments in the program's folder.
    pub(crate) fn heapr(&self, arguments: &[&str]) -> Outcome {
        self.finish(self.spawn_heapr(arguments))
    }

    /// Starts heapr in the program's folder.
    pub(crate) fn spawn_heapr(&self, arguments: &[&str]) -> Child {
        command(arguments)
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Waits for heapr, and reads its output meanwhile, because a pipe holds little. A pipe that
    /// the caller took yields no text.
    pub(crate) fn finish(&self, mut child: Child) -> Outcome {
        let started = Instant::now();
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let read = |pipe: Option<Box<dyn Read + Send>>| {
            std::thread::spawn(move || {
                pipe.map_or(String::new(), |pipe| std::io::read_to_string(pipe).unwrap())
            })
        };
        let output = read(output.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
        let errors = read(errors.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if started.elapsed() > LIMIT => {
                    let _ = child.kill();
                    let said = (output.join(), errors.join());
                    panic!("heapr was not done after {LIMIT:?}: {said:?}");
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Outcome { status, stdout: output.join().unwrap(), stderr: errors.join().unwrap() }
    }

    /// Waits until heapr has begun to write into the folder.
    pub(crate) fn wait_for_partial_file(&self) {
        wait_until("heapr writes a file", || {
            let mut names =
                std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
            names.any(|name| name.to_string_lossy().ends_with(".partial")).then_some(())
        });
    }

    /// Returns names in the folder that begin with `Heap`, hidden ones, too.
    pub(crate) fn heap_files(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name.trim_start_matches('.').starts_with("Heap"));
        names.sort();
        names
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends one request to a server, and returns its answer.
pub(crate) fn request(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Returns the ids of all objects of a class, sorted. The file has them by address, which a
/// compaction changes.
pub(crate) fn ids_of(path: &Path, class: &str) -> Vec<u64> {
    let snapshot: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let fields = snapshot["snapshot"]["meta"]["node_fields"].as_array().unwrap();
    let at = |name: &str| fields.iter().position(|field| field == name).unwrap();
    let (kind, name, id) = (at("type"), at("name"), at("id"));
    let kinds = snapshot["snapshot"]["meta"]["node_types"][kind].as_array().unwrap();
    let object = kinds.iter().position(|kind| kind == "object").unwrap() as u64;
    let strings = snapshot["strings"].as_array().unwrap();
    let nodes: Vec<u64> =
        snapshot["nodes"].as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect();
    assert_eq!(
        nodes.len() as u64,
        snapshot["snapshot"]["node_count"].as_u64().unwrap() * fields.len() as u64
    );
    let mut ids: Vec<u64> = nodes
        .chunks_exact(fields.len())
        .filter(|node| node[kind] == object && strings[node[name] as usize] == class)
        .map(|node| node[id])
        .collect();
    ids.sort_unstable();
    ids
}
