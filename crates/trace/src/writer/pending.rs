//! Entries of tables that wait for their chunk.

use crate::tables::Entry;

/// Entries of a table that are not written yet.
#[derive(Debug)]
pub(super) struct Pending<T> {
    bytes: Vec<u8>,
    count: u32,
    entry: std::marker::PhantomData<T>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { bytes: Vec::new(), count: 0, entry: std::marker::PhantomData }
    }
}

impl<T: Entry> Pending<T> {
    pub(super) fn add(&mut self, entry: &T) {
        entry.put(&mut self.bytes);
        self.count += 1;
    }

    /// Removes all entries; returns their bytes and their number.
    pub(super) fn take(&mut self) -> (Vec<u8>, u32) {
        (std::mem::take(&mut self.bytes), std::mem::take(&mut self.count))
    }
}
