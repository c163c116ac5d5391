//! The heap graph: objects and references in flat arrays, and what follows from their shape alone.
//!
//! You bring a [`Graph`] of numbered nodes and edges, and closures that say what counts (which
//! edges keep an object alive, how large a node is). Nothing here knows names, V8 or malloc, and
//! nothing reads or writes files.
//!
//! * [`Retainers`]: who refers to a node.
//! * [`Dominators`], [`DominatorTree`], [`retained_bytes`]: what would be freed with a node.
//! * [`distances`], [`reachable`]: breadth-first walks with filters.
//! * [`PathSearch`]: the shortest ways from a node up to a root.
//! * [`Components`]: groups of nodes that lead to each other.
//! * [`compare_sorted`]: two populations by key.
//!
//! All walks are iterative; the depth of a graph is bounded by its nodes only. Node and edge
//! numbers are `u32`, sums of sizes `u64`.
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
