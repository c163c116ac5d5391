//! What all resident memory of a process is.

use std::io::{self, Write};

use serde_json::json;

use super::command::ExplainArguments;

/// Options that only a process has.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ResidentArguments {}

/// The parts of a process's resident memory.
#[derive(Debug)]
pub(super) struct Resident {
    pid: u32,
    resident_bytes: u64,
}

/// Looks at a process.
pub(super) fn of_process(pid: u32, _arguments: &ExplainArguments) -> anyhow::Result<Resident> {
    let resident_bytes = heapr_proc::resident_bytes(pid);
    Ok(Resident { pid, resident_bytes: resident_bytes.unwrap_or(0) })
}

impl Resident {
    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "process {}: {} bytes resident", self.pid, self.resident_bytes)
    }

    pub(super) fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(json!({ "pid": self.pid, "resident_bytes": self.resident_bytes }))
    }
}
