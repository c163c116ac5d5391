//! The rundown: live blocks of glibc's heap in a stopped process, read from outside.
//!
//! The caller brings a [`HeapMemory`] that reads the target, and a stopped target with no thread
//! inside the allocator.
//!
//! The rundown lists every block that the program holds, with its usable size, and no free one.
//! Chunks in bins are recognised by the flag of the chunk behind them. Chunks in fastbins and in
//! thread caches look used and are removed by following those lists.
//!
//! Two steps make the stop short. [`Plan::make`] runs before it and finds libc, its version and its
//! `main_arena`; [`walk`] reads during it. The result of `walk` is compact (4 bytes a chunk);
//! blocks are listed after the target runs again.
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
//! Limits: other allocators are refused ([`Error::OtherAllocator`]). Requested sizes are unknown:
//! malloc stores only the size that a block can hold.
//!
//! Invariants: memory and time are bounded by the target's mappings, whatever its heap holds. A
//! list is followed once round at most. Damage becomes a [`Finding`] with address and value, and
//! the walk continues behind it if possible.
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
pub use layout::Version;
pub use live_blocks::{BlockKind, LiveBlock, Rundown, Totals};
pub use read_store::ReadStore;
pub use regions::{Region, RegionKind, Regions, regions};
pub use walk::{Reading, read, walk};
