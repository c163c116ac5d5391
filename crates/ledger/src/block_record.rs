//! Compact record of a live block without its address, and the owner of an address.

use heapr_trace::{Block, HeapId, ProcessIndex, StackIndex, ThreadIndex};

/// Top bit of a record's thread number: the block came out of a realloc.
const IS_REALLOC: u32 = 1 << 31;

/// A live block without its address and owner.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct BlockRecord {
    pub(crate) size_bytes: u64,
    alloc_ns: u64,
    pub(crate) stack: u32,
    thread: u32,
}

impl BlockRecord {
    #[inline(always)]
    pub(crate) fn new(block: &Block) -> Self {
        Self {
            size_bytes: block.size_bytes,
            alloc_ns: block.alloc_ns,
            stack: block.stack.0,
            thread: block.thread.0 & !IS_REALLOC | if block.is_realloc { IS_REALLOC } else { 0 },
        }
    }

    #[inline(always)]
    pub(crate) fn block(&self, owner: u32, address_avma: u64) -> Block {
        Block {
            process: ProcessIndex((owner >> 8).wrapping_sub(1)),
            heap: HeapId(owner as u8),
            address_avma,
            size_bytes: self.size_bytes,
            stack: StackIndex(self.stack),
            thread: ThreadIndex(self.thread & !IS_REALLOC),
            alloc_ns: self.alloc_ns,
            is_realloc: self.thread & IS_REALLOC != 0,
        }
    }
}

/// Packs an owner: process + 1 (24 bits) and heap (8 bits). 0 stands for no owner.
#[inline(always)]
pub(crate) fn owner(process: ProcessIndex, heap: HeapId) -> u32 {
    process.0.wrapping_add(1) << 8 | u32::from(heap.0)
}

/// Whether an owner is one of the process's heaps.
#[inline(always)]
pub(crate) fn is_of(owner: u32, process: ProcessIndex) -> bool {
    owner >> 8 == process.0.wrapping_add(1) & 0xff_ffff
}
