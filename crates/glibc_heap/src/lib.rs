//! The rundown: the live blocks of glibc's heap in a stopped process, read from outside.
//!
//! You provide: a [`HeapMemory`] that reads the target, and the target at rest, with no thread
//! inside the allocator.
//!
//! It lists every block that the program holds, with its usable size, and none that is free: chunks
//! in bins are told by the flag of the chunk behind them; chunks in fastbins and in the threads'
//! caches look used and are taken out by walking those lists. Two steps, so that the stop is short:
//! [`Plan::make`] before it finds libc, its version and its `main_arena`; [`walk`] under it reads.
//! What `walk` gives is compact (4 bytes a chunk); its blocks are listed after the target runs
//! again.
//!
//! ```text
//!  libc's .data                     a heap of 64 MiB, so aligned         [heap], by brk
//!  +--------------+  next    +--------------------------------+         +--------------------------------+
//!  | main_arena   | -------> | heap_info | arena | chunks ... |         | chunks ...              | top  |
//!  |  fastbins    |          +--------------------------------+         +--------------------------------+
//!  |  top, bins   |  top     +--------------------------------+         anonymous mappings, a block each
//!  |  next        |   of it->| heap_info | chunks ...   | top |         +----------------------+
//!  +--------------+          +-----|--------------------------+         | 0 | size+2 | block ...|
//!  | mp_ counts   |                +-> prev: the heap before            +----------------------+
//! ```
//!
//! It is not for: other allocators (said as [`Error::OtherAllocator`]), and sizes as requested:
//! malloc does not keep them, only what a block can hold.
//!
//! Invariants: memory and time are bounded by the target's mappings, whatever its heap holds; no
//! list is followed twice round; damage becomes a [`Finding`], with address and value, and the walk
//! goes on behind it where that is possible.
#![forbid(unsafe_code)]

mod allocator;
mod arena;
mod arena_top;
mod block_scan;
mod chunk_lists;
mod chunk_walk;
mod chunks;
mod core_memory;
mod error;
mod finding;
mod heap_memory;
mod heap_plan;
mod known_paths;
mod layout;
mod live_blocks;
mod mappings;
mod page_cache;
mod parameters;
mod piece_walk;
mod read_store;
mod references;
mod regions;
mod resync;
mod segment;
mod thread_caches;
mod walk;

pub use arena_top::ArenaTop;
pub use chunks::{ChunkRun, ChunkUse, HeapChunk};
pub use error::Error;
pub use finding::Finding;
pub use heap_memory::HeapMemory;
pub use heap_plan::Plan;
pub use layout::{PAGE_BYTES, Version};
pub use live_blocks::{BlockKind, LiveBlock, Rundown, Totals};
pub use read_store::ReadStore;
pub use regions::{Region, RegionKind, Regions, regions};
pub use walk::{Reading, read, walk};
