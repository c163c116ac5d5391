//! Snapshot files of managed heaps: they are written, and what they have is told.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use heapr_managed::{Contents, ManagedHeap, NodeKind, RootKind, write_snapshot};
use heapr_table::quantity::{bytes, count, duration, plural};
use serde_json::{Value, json};

use crate::output::{OutputFile, already_exists};

/// Creates the file of a snapshot.
///
/// # Errors
/// It exists and may not be overwritten, or cannot be created.
pub(super) fn create(path: &Path, overwrites: bool) -> anyhow::Result<OutputFile> {
    if !overwrites && path.symlink_metadata().is_ok() {
        return Err(already_exists(path));
    }
    OutputFile::create_unnamed(path, overwrites)
}

/// Writes a heap into its file, which is kept then.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(heap: &mut ManagedHeap, mut file: OutputFile, path: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    write_snapshot(heap, &mut file).with_context(cannot)?;
    file.flush().with_context(cannot)?;
    file.keep()?;
    Ok(())
}

/// Number and size of nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    count: u64,
    bytes: u64,
}

/// Contents of a written snapshot.
pub(super) struct HeapFacts {
    runtime: String,
    language: &'static str,
    objects: Amount,
    /// Native blocks, and data of arrays.
    native: Amount,
    /// Number of native blocks with the stack that allocated them.
    stack_count: usize,
    reference_count: usize,
    garbage_count: usize,
    notes: Vec<String>,
}

impl HeapFacts {
    pub(super) fn of(heap: &ManagedHeap) -> Self {
        let (mut objects, mut native) = (Amount::default(), Amount::default());
        for (number, node) in heap.nodes.iter().enumerate() {
            let is_block = heap.label_of(node).kind == NodeKind::Block;
            let amount = if is_block { &mut native } else { &mut objects };
            amount.count += 1;
            amount.bytes = amount.bytes.saturating_add(heap.own_bytes(number as u32));
        }
        let garbage = heap.roots.iter().filter(|root| root.kind == RootKind::Garbage);
        Self {
            runtime: heap.runtime.clone(),
            language: if heap.language.is_empty() { "python" } else { heap.language },
            objects,
            native,
            stack_count: heap.stack_count(),
            reference_count: heap.edges.len(),
            garbage_count: garbage.map(|root| root.edges.len()).sum(),
            notes: heap.notes.clone(),
        }
    }

    /// Prints what the snapshot has.
    pub(super) fn print(&self, path: &Path, taken_in: Duration) {
        say!(
            "{}: {}: {} of {}, {}, in {}",
            path.display(),
            self.runtime,
            bytes(self.objects.bytes),
            plural(self.objects.count, "object"),
            plural(self.reference_count as u64, "reference"),
            duration(taken_in.as_nanos() as u64),
        );
        if self.native.count > 0 {
            let with_stacks = match self.stack_count {
                0 => String::new(),
                some => format!(", {} with the stack that allocated them", count(some as u64)),
            };
            say!(
                "  and {} of native memory in {}{with_stacks}",
                bytes(self.native.bytes),
                plural(self.native.count, "block")
            );
        }
    }

    /// Prints what is garbage, and what could not be seen.
    pub(super) fn print_rest(&self) {
        if self.garbage_count > 0 {
            say!(
                "  {} of garbage that the collector has not come to yet",
                match self.garbage_count {
                    1 => "one object or circle".to_owned(),
                    more => format!("{} objects or circles", count(more as u64)),
                }
            );
        }
        for note in &self.notes {
            say!("  not seen: {note}");
        }
    }

    /// Returns the contents as JSON.
    pub(super) fn json(&self, path: &Path, contents: Contents) -> Value {
        json!({
            "file": path.to_string_lossy(),
            "heap": self.language,
            "runtime": self.runtime,
            "object_count": self.objects.count,
            "object_bytes": self.objects.bytes,
            "native_count": self.native.count,
            "native_bytes": self.native.bytes,
            "native_with_stack_count": self.stack_count,
            "reference_count": self.reference_count,
            "garbage_count": self.garbage_count,
            "contents": if contents == Contents::Strings { "strings" } else { "names" },
            "notes": self.notes,
        })
    }
}
