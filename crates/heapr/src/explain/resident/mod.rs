//! What all resident memory of a process is.

mod heap_look;
mod json;
mod quiet_memory;
mod reading;
mod text;

use std::io::{self, Write};
use std::time::Duration;

use heapr_resident::{Account, Beside};

use super::command::ExplainArguments;

/// Options that only a process has.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ResidentArguments {
    /// Look into glibc's heap: what is live, free in whole pages, free and pinned. The process
    /// stands still for milliseconds; a large heap is read while it runs
    #[arg(long)]
    deep: bool,
}

/// The resident memory of a process, explained.
#[derive(Debug)]
pub(super) struct Resident {
    pub(super) pid: u32,
    /// The program's file.
    pub(super) executable: String,
    pub(super) account: Account,
    pub(super) beside: Beside,
    /// How glibc's heap was looked into, if it was.
    pub(super) moment: Option<Moment>,
    /// What could not be told, and why.
    pub(super) limits: Vec<String>,
}

/// A look into a heap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// How long the process stood still; `None`: it ran.
    pub(super) held: Option<Duration>,
    /// No thread was in the allocator.
    pub(super) is_quiet: bool,
}

/// Looks at a process.
pub(super) fn of_process(pid: u32, arguments: &ExplainArguments) -> anyhow::Result<Resident> {
    reading::read(pid, arguments.resident.deep)
}

impl Resident {
    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        text::write(self, out)
    }

    pub(super) fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(json::value(self))
    }
}
