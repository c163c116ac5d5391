//! Heaps of allocators that are not glibc's, told by what they keep in the process's own memory.
//!
//! ```text
//! written data of a module --> page map --> descriptions of runs of pages --> parts, figures
//! memory at multiples of 32 MiB -----------> segments of mimalloc ---------^
//! ```
//!
//! Nothing is called in the process. Each layout proves itself by what stands in memory: where that
//! does not hold (another version, damage) nothing is told, and the memory stays undivided. And its
//! allocator's code must be in a module, and its heap where memory is (`belief`).

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

/// The heaps of a process: at most one of each allocator.
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
