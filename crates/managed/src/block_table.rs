//! Blocks of the C library's heap by address, and which of them are known.

use crate::heap::{EdgeName, NativeBlock};

/// State of the blocks of a heap.
#[derive(Debug)]
pub(crate) struct Blocks<'p> {
    /// By address.
    all: &'p [NativeBlock],
    /// Whether each block is an object or a part of one, or has a node.
    is_known: Vec<bool>,
}

impl<'p> Blocks<'p> {
    /// `all`: by address.
    pub(crate) fn of(all: &'p [NativeBlock]) -> Self {
        Self { all, is_known: vec![false; all.len()] }
    }

    /// Number of the block that begins at an address.
    pub(crate) fn at(&self, address_avma: u64) -> Option<usize> {
        let (first, last) = (self.all.first()?, self.all.last()?);
        if !(first.address_avma..=last.address_avma).contains(&address_avma) {
            return None;
        }
        self.all.binary_search_by_key(&address_avma, |block| block.address_avma).ok()
    }

    /// Number of the block that an address lies in.
    pub(crate) fn around(&self, address_avma: u64) -> Option<usize> {
        let number = self.all.partition_point(|block| block.address_avma <= address_avma).checked_sub(1)?;
        let block = &self.all[number];
        (address_avma - block.address_avma < block.usable_bytes).then_some(number)
    }

    /// Blocks that begin in a range of addresses.
    pub(crate) fn in_range(&self, start_avma: u64, end_avma: u64) -> &'p [NativeBlock] {
        let at = |avma: u64| self.all.partition_point(|block| block.address_avma < avma);
        self.all.get(at(start_avma)..at(end_avma)).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// A block by its number.
    pub(crate) fn block(&self, number: usize) -> NativeBlock {
        self.all[number]
    }

    /// Whether a block is an object or a part of one, or has a node.
    pub(crate) fn is_known(&self, number: usize) -> bool {
        self.is_known[number]
    }

    /// Marks a block as known. Returns false if it was already.
    pub(crate) fn learn(&mut self, number: usize) -> bool {
        !std::mem::replace(&mut self.is_known[number], true)
    }
}

/// A word that leads inside of a block that was unknown when the word was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InsideWord {
    /// Node that has the word.
    pub(crate) node: u32,
    /// Number of the block.
    pub(crate) block: u32,
    pub(crate) name: EdgeName,
}
