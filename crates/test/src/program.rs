//! Runs the program `heapr`.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{Error, Result};

/// Runs a command of heapr to its end, and returns its standard output.
pub(crate) fn ask<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Result<String> {
    let program = std::env::var_os("HEAPR").unwrap_or_else(|| "heapr".into());
    let mut command = Command::new(&program);
    command.args(words).stdin(Stdio::null()).env_remove("LD_PRELOAD");
    let output = command
        .output()
        .map_err(|source| Error::NoProgram { program: program.to_string_lossy().into_owned(), source })?;
    if !output.status.success() {
        return Err(Error::Refused { said: String::from_utf8_lossy(&output.stderr).trim().to_owned() });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command with `--format json`, and returns its answer.
pub(crate) fn ask_json<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Result<Value> {
    let mut words: Vec<std::ffi::OsString> = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
    words.extend(["--format".into(), "json".into()]);
    serde_json::from_str(&ask(words)?).map_err(|_| Error::Answer { missing: "JSON" })
}
