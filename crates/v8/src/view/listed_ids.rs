//! The nodes of ids that were listed a moment ago: what is asked about is what was shown, and to
//! find an id in an index takes a walk over all.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::view::ObjectRow;

/// Ids that are kept; then it begins anew.
const MOST: usize = 1 << 16;

/// See the module.
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
