//! The native heap as a graph: references between live blocks, holders and leaks.
//!
//! The caller brings the live blocks ([`BlockMap`]), the memory as a [`Memory`], and facts of the
//! process ([`ProcessFacts`]). [`root_areas`] lists the memory to scan besides the blocks, and
//! [`scan`] finds the references: words that lead into a block. The result is stored in the trace
//! ([`heapr_trace::HeapGraph`]) and answers all later questions without the process.
//!
//! A process does not say which words are pointers. Every word that looks like one counts, graded
//! by how sure it is ([`heapr_trace::EdgeGrade`]). A block is called definitely leaked only if no
//! reference of any grade leads to it.
//!
//! Invariants: all input and output goes through [`Memory`], whose answers are untrusted. Memory
//! that the program can reach in ordinary ways is never left out of the roots.
#![forbid(unsafe_code)]

mod areas;
mod block_map;
mod heuristics;
mod holders;
mod joint_holders;
mod lasting;
mod leaks;
mod made_type;
mod memory;
mod modules;
mod packed_pages;
mod python_types;
mod references;
mod scan;
mod scanned;
mod shape_nodes;
mod shapes;
mod slices;
mod stacks;
mod text;
mod thread_modules;
mod type_names;
mod verdict;

pub use areas::{Area, FrameFacts, ProcessFacts, Regions, ThreadFacts, root_areas};
pub use block_map::{BlockMap, KnownBlock};
pub use holders::{Gathering, HeldSums, Holders};
pub use lasting::LastingReferences;
pub use leaks::{Leak, LeakKind, Leaks};
pub use made_type::made_type;
pub use memory::Memory;
pub use modules::is_looked_through;
pub use packed_pages::{PACKED_PAGE_BYTES, PackedPages};
pub use scan::{Cut, Texts, scan};
pub use scanned::Scanned;
pub use thread_modules::{OF_MODULE, ThreadModule};
pub use type_names::{ToldBy, told_type};
pub use verdict::{Reach, Verdicts};
