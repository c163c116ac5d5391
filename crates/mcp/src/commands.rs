//! Runs the command line for one question, with bounds on time and size of the answer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tokio::process::Command;

use crate::{Error, Result};

/// Largest time of a command, in seconds.
const SECONDS_MAX: u64 = 600;
/// Time in which a program must end after SIGTERM, in seconds.
const LAST_WORDS_SECONDS: u64 = 30;
/// Largest size of an answer's text, in bytes; it fits a client's context.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// Runner of heapr's commands.
#[derive(Debug, Clone)]
pub(crate) struct Commands {
    program: PathBuf,
}

impl Commands {
    /// Creates a runner of the command line's program.
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program }
    }

    /// Runs a command to its end. Returns its standard output, with its warnings first.
    pub(crate) async fn ask<Word: Into<OsString>>(
        &self,
        words: impl IntoIterator<Item = Word>,
    ) -> Result<String> {
        let output = self.run(words, SECONDS_MAX).await?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr);
        let warnings: Vec<&str> = said.lines().filter(|line| line.starts_with("heapr: warning:")).collect();
        if !warnings.is_empty() {
            text = format!("{}\n{text}", warnings.join("\n"));
        }
        Ok(shortened(text))
    }

    /// Runs a command that answers with JSON, and returns the whole answer.
    pub(crate) async fn ask_json<Word: Into<OsString>>(
        &self,
        words: impl IntoIterator<Item = Word>,
    ) -> Result<serde_json::Value> {
        let output = self.run(words, SECONDS_MAX).await?;
        serde_json::from_slice(&output.stdout).map_err(|error| Error::Refused(error.to_string()))
    }

    /// Runs a command to its end, for at most `seconds_max`. A finding (status 1) is an answer.
    pub(crate) async fn run<Word: Into<OsString>>(
        &self,
        words: impl IntoIterator<Item = Word>,
        seconds_max: u64,
    ) -> Result<Output> {
        let output = self.run_any(words, seconds_max).await?;
        match output.status.code() {
            Some(0 | 1) => Ok(output),
            _ => {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                let said = if said.is_empty() { format!("heapr: {}", output.status) } else { said };
                Err(Error::Refused(shortened(said)))
            }
        }
    }

    /// Runs a command that runs a program. After `seconds` the program gets SIGTERM; the recording
    /// up to then stays.
    pub(crate) async fn run_for<Word: Into<OsString>>(
        &self,
        words: impl IntoIterator<Item = Word>,
        folder: Option<&Path>,
        seconds: u64,
    ) -> Result<Output> {
        let mut command = Command::new(&self.program);
        command.args(words.into_iter().map(Into::into)).stdin(Stdio::null()).kill_on_drop(true);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        let child = command.spawn().map_err(Error::Run)?;
        let pid = child.id().and_then(|pid| rustix::process::Pid::from_raw(i32::try_from(pid).ok()?));
        let ended = child.wait_with_output();
        tokio::pin!(ended);
        // heapr passes SIGTERM on to the program; SIGKILL ends heapr if the program ignores it.
        for (signal, seconds) in [(Signal::TERM, seconds), (Signal::KILL, LAST_WORDS_SECONDS)] {
            match tokio::time::timeout(Duration::from_secs(seconds), &mut ended).await {
                Ok(output) => return output.map_err(Error::Run),
                Err(_) => {
                    let _ = pid.map(|pid| rustix::process::kill_process(pid, signal));
                }
            }
        }
        Err(Error::Late(seconds + LAST_WORDS_SECONDS))
    }

    /// Runs a command as [`Self::run`] does, whatever its status.
    async fn run_any<Word: Into<OsString>>(
        &self,
        words: impl IntoIterator<Item = Word>,
        seconds_max: u64,
    ) -> Result<Output> {
        let mut command = Command::new(&self.program);
        command.args(words.into_iter().map(Into::into)).stdin(Stdio::null()).kill_on_drop(true);
        let ended = tokio::time::timeout(Duration::from_secs(seconds_max), command.output()).await;
        ended.map_err(|_| Error::Late(seconds_max))?.map_err(Error::Run)
    }
}

/// Cuts a text to the size of an answer, and notes the number of bytes cut.
pub(crate) fn shortened(mut text: String) -> String {
    if text.len() > ANSWER_BYTES_MAX {
        let whole = text.len();
        let end = (0..=ANSWER_BYTES_MAX).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push_str(&format!("\n… {} bytes more: ask for fewer (top, depth) or filter", whole - end));
    }
    text
}

#[test]
fn a_long_answer_is_cut_between_characters_and_says_so() {
    let text = shortened("é".repeat(ANSWER_BYTES_MAX));
    assert!(text.len() < ANSWER_BYTES_MAX + 100 && text.contains("bytes more"));
    assert_eq!(shortened("short".to_owned()), "short");
}
