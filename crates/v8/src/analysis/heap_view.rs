//! What the analyses need to know of a snapshot as a whole.

use heapr_graph::{Dominators, Graph, Retainers};

use crate::CallFunction;
use crate::call_tree::allocation_stack;
use crate::devtools;
use crate::devtools::MovedBytes;
use crate::objects::Objects;

pub(super) use crate::objects::{EdgeName, group_name};

/// An opened snapshot, in memory, with what was computed over it.
pub trait HeapView: Objects {
    /// The nodes and edges.
    fn graph(&self) -> &Graph;
    /// The incoming edges.
    fn retainers(&self) -> &Retainers;
    /// The dominators over the edges that keep their target alive; those of the program in both
    /// ways of taking a snapshot.
    fn dominators(&self) -> &Dominators;
    /// The bytes of inner objects that count for their owners, in the sizes of both.
    fn moved_bytes(&self) -> &[MovedBytes];
    /// The functions in which an object was made, innermost first, as far as an allocation trace
    /// tells.
    fn allocation_stack(&self, node: u32) -> Vec<CallFunction>;
}

impl HeapView for devtools::Heap {
    fn graph(&self) -> &Graph {
        self.snapshot().graph()
    }

    fn retainers(&self) -> &Retainers {
        self.retainers()
    }

    fn dominators(&self) -> &Dominators {
        self.owner_dominators()
    }

    fn moved_bytes(&self) -> &[MovedBytes] {
        self.moved_bytes()
    }

    fn allocation_stack(&self, node: u32) -> Vec<CallFunction> {
        allocation_stack(self, node)
    }
}

/// The target of the first field with one of these names.
pub(super) fn field(heap: &impl HeapView, node: u32, names: &[&str]) -> Option<u32> {
    heap.graph().edges(node).find_map(|edge| match heap.edge_name(edge) {
        EdgeName::Name(name) if names.contains(&name.as_ref()) => Some(heap.graph().target(edge)),
        _ => None,
    })
}
