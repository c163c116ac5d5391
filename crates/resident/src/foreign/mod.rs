//! Heaps of allocators that are not glibc's, read from their tables in the process's memory.
//!
//! ```text
//! written data of a module --> page map --> descriptions of runs of pages --> parts, figures
//! memory at multiples of 32 MiB -----------> segments of mimalloc ---------^
//! ```
//!
//! The process executes nothing for it. Each layout is proved by the memory's contents. If the
//! proof fails (another version, damage), the memory stays undivided. The allocator's code must be
//! in a module, and its heap in mapped memory ([`belief`]).

mod belief;
mod claimed;
mod class_sizes;
mod heap;
mod jemalloc;
mod mimalloc;
mod page_map;
mod tcmalloc;
mod thread_lists;
mod words;

pub(crate) use claimed::claimed;
pub use heap::{Figure, ForeignHeap};
use heapr_glibc_heap::HeapMemory;

use crate::subject::Subject;

/// Heaps of a process, at most one of each allocator.
pub(crate) fn heaps<M: HeapMemory>(subject: &Subject, memory: &M) -> Vec<ForeignHeap> {
    type Finder<M> = fn(&Subject, &M) -> Option<ForeignHeap>;
    let finders: [Finder<M>; 3] = [jemalloc::find, tcmalloc::find, mimalloc::find];
    let mut found: Vec<ForeignHeap> = finders
        .iter()
        .filter_map(|find| find(subject, memory))
        .filter(|heap| belief::fits(&heap.parts, &subject.mappings))
        .collect();
    found.iter_mut().for_each(ForeignHeap::put_in_order);
    found
}
