//! Findings of files and of sessions that run.

use std::path::{Path, PathBuf};

use heapr_session::{Answer as SessionAnswer, Request};

use super::answer::Answer;
use super::command::ExplainArguments;
use super::target::client;
use crate::trace_file::open;

/// Of what a session has written so far.
pub(super) fn of_session(name: &str, arguments: &ExplainArguments) -> anyhow::Result<Answer> {
    match client(name)?.ask(Request::Status)? {
        SessionAnswer::Status(status) => of_files(&[PathBuf::from(status.output)], arguments),
        _ => anyhow::bail!("session {name} gives an answer that makes no sense"),
    }
}

/// Of files.
pub(super) fn of_files(files: &[PathBuf], _arguments: &ExplainArguments) -> anyhow::Result<Answer> {
    let mut names = Vec::new();
    for file in files {
        names.push(of_trace(file)?);
    }
    Ok(Answer { subject: names.join(", "), findings: Some(Vec::new()), resident: None })
}

fn of_trace(file: &Path) -> anyhow::Result<String> {
    open(file)?;
    Ok(file.display().to_string())
}
