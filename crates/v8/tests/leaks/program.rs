//! Running victim that accepts commands.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// Folder of the victims in the repository.
pub(crate) fn victims() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../victims/node")
}

/// Returns a copy of the victims with their packages, made once; `None` without Node or npm.
fn installed() -> Option<&'static Path> {
    static INSTALLED: OnceLock<Option<PathBuf>> = OnceLock::new();
    INSTALLED.get_or_init(|| installed_from(&victims(), &copies(), "express-session")).as_deref()
}

/// Folder of the copies with packages.
fn copies() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("node-victims")
}

/// Returns the copy of a folder of `victims/node` with its packages, which include `package`.
pub(crate) fn installed_folder(name: &str, package: Option<&str>) -> Option<PathBuf> {
    installed()?;
    let (from, copy) = (victims().join(name), copies().join(name));
    match package {
        Some(package) => installed_from(&from, &copy, package),
        None => {
            copy_files(&from, &copy);
            Some(copy)
        }
    }
}

fn copy_files(from: &Path, copy: &Path) {
    std::fs::create_dir_all(copy).expect("the copy's folder");
    for entry in std::fs::read_dir(from).expect("the victims are there") {
        let entry = entry.expect("an entry of the folder");
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            std::fs::copy(entry.path(), copy.join(entry.file_name())).expect("a copy of a victim");
        }
    }
}

fn installed_from(from: &Path, copy: &Path, package: &str) -> Option<PathBuf> {
    copy_files(from, copy);
    if copy.join("node_modules").join(package).is_dir() {
        return Some(copy.to_owned());
    }
    let npm = Command::new("npm")
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"])
        .current_dir(copy)
        .status();
    match npm {
        Ok(status) if status.success() => Some(copy.to_owned()),
        _ => {
            eprintln!("npm cannot install the packages of the victims: nothing is tested");
            None
        }
    }
}

#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// Starts the victim; `HEAPR_TEST_NODE` overrides the installed Node.
    pub(crate) fn start(name: &str) -> Option<Self> {
        Self::start_file(&installed()?.join(name))
    }

    /// Starts a victim of a copy.
    pub(crate) fn start_file(file: &Path) -> Option<Self> {
        let node = std::env::var_os("HEAPR_TEST_NODE").unwrap_or_else(|| "node".into());
        let mut child = Command::new(node)
            // Several victims run at once: each opens its inspector on a free port.
            .arg("--inspect-port=0")
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| eprintln!("node does not start: {error}: nothing is tested"))
            .ok()?;
        let input = child.stdin.take()?;
        let output = BufReader::new(child.stdout.take()?);
        let mut program = Self { child, input, output };
        program.expect_line("ready");
        Some(program)
    }

    /// Process id of the victim.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command and waits until it is done.
    pub(crate) fn tell(&mut self, command: &str) {
        writeln!(self.input, "{command}").expect("the victim reads");
        self.expect_line("done");
    }

    fn expect_line(&mut self, expected: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the victim writes");
        assert_eq!(line.trim_end(), expected);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
