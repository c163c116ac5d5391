//! Divides the resident memory of a process among owners: each page has one, and the lines add up.
//!
//! The caller brings the mappings from `smaps`, the states of single pages, and memory to read.
//! Each of them may be missing; the account then states its limits.
//!
//! ```text
//! smaps ----> mappings --+                            +--> pieces --> lines (sum: Rss)
//! glibc_heap > regions --+--> claims: who owns which --+
//! contents --> pools ... +    addresses               +--> what the resident set does not count
//!
//! a saved answer, a recording -> moments --> lines of each
//! ```
//!
//! Limits: single blocks and their allocating code are out of scope. All reading is done through
//! the caller's traits.
//!
//! Invariants: each page has one owner. The sum over the lines is the sum over the mappings,
//! whatever is claimed. Owners found by elimination are marked as such.
#![forbid(unsafe_code)]

mod account;
mod advice;
mod arenas;
mod beside;
mod claims;
mod class;
mod code_files;
mod foreign;
mod foreign_account;
mod heap_account;
mod heap_detail;
mod heap_pages;
mod heap_spans;
mod malloc_figures;
mod owners;
mod page_cells;
mod python_pools;
mod recorded_moments;
mod residency;
mod saved_detail;
mod saved_moments;
mod subject;
mod thread_stacks;

pub use account::{Account, Line, Piece};
pub use advice::{Advice, Certainty, advice};
pub use beside::Beside;
pub use class::{Class, ToldBy, class_label};
pub use code_files::data_files;
pub use foreign::{Figure, ForeignHeap};
pub use heap_detail::HeapDetail;
pub use heap_pages::{BlockWatcher, HeapDivision};
pub use malloc_figures::MallocFigures;
pub use page_cells::{CellRun, PageCells};
pub use python_pools::PythonPools;
pub use saved_detail::{SavedDetail, SavedFinding, SavedLine, SavedPart};
pub use saved_moments::{SavedError, SavedMoment, SavedMoments};
pub use subject::{PageStates, Subject};

/// Whether a mapping is private anonymous memory that the program may write.
fn is_private_anonymous(mapping: &heapr_proc::Mapping) -> bool {
    mapping.inode == 0
        && !mapping.is_shared
        && mapping.is_readable
        && mapping.is_writable
        && (mapping.name.is_empty() || mapping.name.starts_with("[anon:"))
}
