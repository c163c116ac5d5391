//! A Python that works for a round at each line of its input.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, ensure};

/// A Python that waits for its input, and ends with it.
pub(super) struct Waiting {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Waiting {
    /// Starts a program, given by its path in the repository, and waits until it is ready.
    pub(super) fn start(python: &str, program: &str, words: &[&str]) -> anyhow::Result<Self> {
        let program = crate::root().join(program);
        let mut command = Command::new(python);
        command.arg(program).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| python.to_owned())?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (input, output) = (input.context("no input")?, output.context("no output")?);
        let mut waiting = Self { child, input, output: BufReader::new(output) };
        ensure!(waiting.line()? == "READY\n", "{python} did not get ready");
        Ok(waiting)
    }

    /// Process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends an empty line.
    pub(super) fn ask(&mut self) -> anyhow::Result<()> {
        self.input.write_all(b"\n")?;
        Ok(())
    }

    /// Makes the program work for a round, and waits until it has done so.
    pub(super) fn step(&mut self) -> anyhow::Result<()> {
        self.ask()?;
        let line = self.line()?;
        ensure!(line == "DONE\n", "the program ended at its work: {line:?}");
        Ok(())
    }

    /// Next line of its output.
    pub(super) fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }
}
