//! Frees that a recording has after a snapshot: a block that is freed later was not leaked.

use std::collections::HashSet;

use heapr_trace::{Action, HeapId};

use super::graph_file::GraphFile;

/// Later frees of blocks that were called leaked.
#[derive(Debug, Default)]
pub(super) struct LaterFrees {
    /// Blocks that were freed or reallocated.
    pub(super) freed: HashSet<u32>,
    /// Recorded time after the snapshot, in ns; 0 if the recording ends there.
    pub(super) watched_ns: u64,
}

impl LaterFrees {
    /// Reads the events after the snapshot; `is_asked` says which blocks matter.
    pub(super) fn of(file: &GraphFile, is_asked: impl Fn(u32) -> bool) -> anyhow::Result<Self> {
        let mut later = Self::default();
        let mut events = file.trace.events(file.snapshot.time_ns.saturating_add(1), u64::MAX);
        while let Some(batch) = events.next_batch()? {
            for event in batch.iter().filter(|event| event.time_ns > file.snapshot.time_ns) {
                later.watched_ns = event.time_ns - file.snapshot.time_ns;
                let address_avma = match event.action {
                    Action::Free { address_avma, .. } => address_avma,
                    Action::Realloc { old_address_avma, .. } => old_address_avma,
                    _ => continue,
                };
                let thread = file.trace.threads().get(event.thread.0 as usize);
                if event.heap != HeapId::MALLOC || thread.is_none_or(|thread| thread.process != file.process)
                {
                    continue;
                }
                let place = file.blocks.binary_search_by_key(&address_avma, |block| block.address_avma);
                // After the first free, the address may be that of another block.
                if let Ok(node) = place
                    && is_asked(node as u32)
                {
                    later.freed.insert(node as u32);
                }
            }
        }
        Ok(later)
    }
}
