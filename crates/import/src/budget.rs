//! Limit of the memory for a file's content, shared by its reader and the trace builder.

use std::cell::Cell;
use std::rc::Rc;

use crate::error::{Error, Result};

/// Remaining bytes; all clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    left_bytes: Rc<Cell<u64>>,
    all_bytes: u64,
}

impl Budget {
    pub(crate) fn new(all_bytes: u64) -> Self {
        Self { left_bytes: Rc::new(Cell::new(all_bytes)), all_bytes }
    }

    pub(crate) fn left_bytes(&self) -> u64 {
        self.left_bytes.get()
    }

    /// Counts bytes that are stored in memory.
    pub(crate) fn keep(&self, bytes: usize) -> Result<()> {
        let left = self.left_bytes.get().checked_sub(bytes as u64);
        self.left_bytes.set(left.ok_or(Error::Swells { bytes: self.all_bytes })?);
        Ok(())
    }
}
