//! Nodes of recently listed ids. Users mostly ask about listed objects, and finding an id in an
//! index takes a scan over all ids.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::view::ObjectRow;

/// Largest number of stored ids; then all are dropped.
const MOST: usize = 1 << 16;

/// Nodes of recently listed ids.
#[derive(Debug, Default)]
pub(super) struct ListedIds {
    nodes: Mutex<FxHashMap<u64, u32>>,
}

impl ListedIds {
    pub(super) fn add<'a>(&self, rows: impl IntoIterator<Item = &'a ObjectRow>) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            if nodes.len() >= MOST {
                nodes.clear();
            }
            nodes.insert(row.id, row.node);
        }
    }

    pub(super) fn node(&self, id: u64) -> Option<u32> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).get(&id).copied()
    }
}
