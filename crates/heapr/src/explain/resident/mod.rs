//! What all resident memory of a process is.

mod json;
mod quiet_memory;
mod reading;
mod text;

use std::io::{self, Write};

use heapr_resident::{Account, Beside};

use super::command::ExplainArguments;

/// Options that only a process has.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ResidentArguments {}

/// The resident memory of a process, explained.
#[derive(Debug)]
pub(super) struct Resident {
    pub(super) pid: u32,
    /// The program's file.
    pub(super) executable: String,
    pub(super) account: Account,
    pub(super) beside: Beside,
    /// What could not be told, and why.
    pub(super) limits: Vec<String>,
}

/// Looks at a process.
pub(super) fn of_process(pid: u32, _arguments: &ExplainArguments) -> anyhow::Result<Resident> {
    reading::read(pid)
}

impl Resident {
    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        text::write(self, out)
    }

    pub(super) fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(json::value(self))
    }
}
