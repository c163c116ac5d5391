//! Heap graph: objects and references in flat arrays, and results that follow from their shape
//! alone.
//!
//! The caller provides a [`Graph`] of numbered nodes and edges. Closures select the edges that keep
//! an object alive and give the size of a node. The crate knows no names, V8 or malloc, and
//! accesses no files.
//!
//! * [`Retainers`]: referrers of a node.
//! * [`Dominators`], [`DominatorTree`], [`retained_bytes`]: bytes that would be freed with a node.
//! * [`distances`], [`reachable`]: walks with filters.
//! * [`PathSearch`]: shortest paths from a node up to a root.
//! * [`Components`]: groups of nodes that lead to each other.
//! * [`compare_sorted`]: comparison of two populations by key.
//!
//! All walks are iterative, so deep graphs do not overflow the stack. Node and edge numbers are
//! `u32`, sums of sizes `u64`.
#![forbid(unsafe_code)]

mod breadth_first;
mod compare;
mod components;
mod dominator_tree;
mod dominators;
mod error;
mod graph;
mod paths;
mod retained;
mod retainers;

pub use breadth_first::{UNREACHED, distances, reachable};
pub use compare::{Compared, compare_sorted};
pub use components::Components;
pub use dominator_tree::DominatorTree;
pub use dominators::Dominators;
pub use error::GraphError;
pub use graph::Graph;
pub use paths::{IncomingEdges, Path, PathBounds, PathSearch};
pub use retained::retained_bytes;
pub use retainers::Retainers;
