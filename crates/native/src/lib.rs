//! The native heap as a graph: which live block refers to which, what holds it, what is leaked.
//!
//! You bring the live blocks ([`BlockMap`]), the memory as a [`Memory`], and what is known of the
//! process ([`ProcessFacts`]); [`root_areas`] says what is to be looked through besides the blocks,
//! and [`scan`] finds the references: words that lead into a block. What it gives is stored in the
//! trace ([`heapr_trace::HeapGraph`]) and answers everything else later, without the process.
//!
//! Nothing in a process says which word is a pointer. So what looks like one counts as one, graded
//! by how sure that is ([`heapr_trace::EdgeGrade`]), and a block is only called leaked for certain
//! if nothing of any grade leads to it.
//!
//! Invariants: nothing here does input or output but through [`Memory`], whose answers are
//! untrusted; what the program can reach in ordinary ways is never left out of the roots.
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
mod python_types;
mod scan;
mod scanned;
mod shape_nodes;
mod shapes;
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
pub use scan::{Cut, Texts, scan};
pub use scanned::Scanned;
pub use thread_modules::{OF_MODULE, ThreadModule};
pub use type_names::{ToldBy, told_type};
pub use verdict::{Reach, Verdicts};
