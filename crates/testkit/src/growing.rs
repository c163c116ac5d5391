//! Programs of `victims/*/heaps`, which grow by a step for each line on their input.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Program that runs until this value is dropped.
#[derive(Debug)]
pub struct Growing {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Growing {
    /// Starts a program of Python, and waits until it is ready. `None` if it ends before, as where
    /// a module is missing.
    ///
    /// # Panics
    /// Panics if the interpreter does not start.
    #[must_use]
    pub fn start(python: &Path, name: &str) -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../victims/python/heaps").join(name);
        let mut command = Command::new(python);
        command
            .arg("main.py")
            .current_dir(folder.canonicalize().expect("the program's folder"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        Self::of(command)
    }

    /// Starts a command, and waits until it is ready; `None` if it ends before.
    ///
    /// # Panics
    /// Panics if the command does not start.
    #[must_use]
    pub fn of(mut command: Command) -> Option<Self> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut program = Self { child, input, output: BufReader::new(output) };
        (program.line() == "READY\n").then_some(program)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line
    }

    /// Makes the program grow by a step, and waits until it has done so.
    ///
    /// # Panics
    /// Panics if the program has ended.
    pub fn step(&mut self) {
        self.input.write_all(b"\n").expect("the program reads");
        assert_eq!(self.line(), "DONE\n");
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
