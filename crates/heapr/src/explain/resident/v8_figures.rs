//! V8's own figures of its heap, read over the process's inspector.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heapr_inspector::{Closing, Inspector, OpenOptions, Process, V8Memory};
use heapr_resident::Class;
use heapr_table::SortRows as _;
use heapr_table::quantity::bytes;
use serde_json::{Value, json};

use super::Resident;

/// Figures, and what was done to get them.
#[derive(Debug)]
pub(super) struct V8Figures {
    memory: V8Memory,
    /// Sentence on what became of the inspector's port.
    done: String,
}

impl V8Figures {
    pub(super) fn ask(pid: u32) -> anyhow::Result<Self> {
        /// Longest wait for a busy thread.
        const WAIT: Duration = Duration::from_secs(10);
        let never = AtomicBool::new(false);
        let process = Process::examine(pid)?;
        let options = OpenOptions { wait: WAIT, ..OpenOptions::default() };
        let mut inspector = Inspector::open(&process, &options, &never)?;
        let address = inspector.address();
        let memory = inspector.memory(&never);
        let done = match inspector.close() {
            Closing::WasOpenBefore => format!("the inspector at {address}, which was open"),
            Closing::Closed => {
                format!("the inspector at {address}, which was opened by a signal and is closed again")
            }
            Closing::Asked(address) => {
                format!(
                    "the inspector at {address}, opened by a signal, which closes when the thread is free"
                )
            }
            Closing::StillOpen(address) => {
                format!("the inspector at {address}, opened by a signal and STILL OPEN")
            }
        };
        Ok(Self { memory: memory?, done })
    }

    pub(super) fn write_text(&self, resident: &Resident, out: &mut dyn Write) -> io::Result<()> {
        let memory = &self.memory;
        let slack = resident.account.bytes(Class::V8Heap).saturating_sub(memory.used_bytes);
        writeln!(
            out,
            "V8's own figures: heap {}, used {}; {} of its pages hold no object",
            bytes(memory.total_bytes),
            bytes(memory.used_bytes),
            bytes(slack)
        )?;
        if let Some(external) = memory.external_bytes {
            writeln!(
                out,
                "  outside of it {}, of that in array buffers {}: malloc's lines have them",
                bytes(external),
                bytes(memory.array_buffer_bytes.unwrap_or(0))
            )?;
        }
        let mut spaces: Vec<_> = memory.spaces.iter().filter(|space| space.used_bytes > 0).collect();
        spaces.sort_rows_by_key(|space| std::cmp::Reverse(space.used_bytes));
        let spaces = spaces.iter().map(|space| {
            let name = space.name.strip_suffix("_space").unwrap_or(&space.name).replace('_', " ");
            format!("{name} {} of {}", bytes(space.used_bytes), bytes(space.size_bytes))
        });
        let spaces: Vec<String> = spaces.collect();
        if !spaces.is_empty() {
            writeln!(out, "  in use by space: {}", spaces.join(", "))?;
        }
        writeln!(out, "  told by {}", self.done)
    }

    pub(super) fn json(&self) -> Value {
        let memory = &self.memory;
        let spaces = memory.spaces.iter().map(|space| {
            json!({"name": space.name, "size_bytes": space.size_bytes, "used_bytes": space.used_bytes, "physical_bytes": space.physical_bytes})
        });
        json!({
            "total_bytes": memory.total_bytes,
            "used_bytes": memory.used_bytes,
            "external_bytes": memory.external_bytes,
            "array_buffer_bytes": memory.array_buffer_bytes,
            "spaces": spaces.collect::<Vec<_>>(),
            "told_by": self.done,
        })
    }
}
