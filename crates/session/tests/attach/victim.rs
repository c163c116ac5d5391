//! Program under test: built from its source, controlled by lines, killed when dropped.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use heapr_testkit::LIMIT;

#[derive(Debug)]
pub(crate) struct Victim {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

/// Builds `victims/NAME.c` (or `victims/NAME`, if the name has an extension) with more flags.
pub(crate) fn build(name: &str, flags: &[&str]) -> PathBuf {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attach/victims").join(match name.contains('.') {
            true => name.to_owned(),
            false => format!("{name}.c"),
        });
    let label: String =
        flags.iter().flat_map(|flag| flag.chars()).filter(char::is_ascii_alphanumeric).collect();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let output = folder.join(format!("attach-{name}{label}"));
    // Tests in other threads and processes may build the same program: each writes a separate file
    // and renames it.
    let partial =
        folder.join(format!("attach-{name}{label}-{}-{:?}", std::process::id(), std::thread::current().id()));
    let status = Command::new("gcc")
        .args(["-O1", "-g", "-D_GNU_SOURCE", "-fno-builtin", "-pthread", "-w"])
        .arg(&source)
        .args(flags)
        .args(["-ldl", "-o"])
        .arg(&partial)
        .status()
        .unwrap();
    assert!(status.success(), "gcc {}", source.display());
    std::fs::rename(partial, &output).unwrap();
    output
}

impl Victim {
    /// Starts a program and waits for its first line, "ready".
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut victim = Self { input: child.stdin.take(), child, lines };
        assert_eq!(victim.line(), "ready");
        victim
    }

    /// Builds and starts a program of the folder.
    pub(crate) fn of(name: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(build(name, &[]));
        command.args(arguments);
        Self::start(command)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the program's first thread is not traced.
    pub(crate) fn is_untraced(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        status.contains("TracerPid:\t0\n")
    }

    pub(crate) fn say(&mut self, line: &str) {
        self.input.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// Returns the next line.
    pub(crate) fn line(&mut self) -> String {
        self.lines.recv_timeout(LIMIT).expect("the program says nothing more")
    }

    /// Waits for a line that was written after the call, which shows that the program runs on.
    pub(crate) fn goes_on(&mut self) {
        while self.lines.try_recv().is_ok() {}
        self.line();
        self.line();
    }

    /// Returns the number of mappings.
    pub(crate) fn mapping_count(&self) -> usize {
        std::fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap().lines().count()
    }

    pub(crate) fn descriptors(&self) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        let mut found: Vec<PathBuf> =
            folder.map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap()).collect();
        found.sort();
        found
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Kills the whole group, because some programs have children.
        let group = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}
