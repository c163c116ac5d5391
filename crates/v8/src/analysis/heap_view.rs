//! Access to a whole snapshot for the analyses.

use heapr_graph::{Dominators, Graph, Retainers};

use crate::CallFunction;
use crate::call_tree::allocation_stack;
use crate::devtools;
use crate::devtools::MovedBytes;
use crate::objects::Objects;

pub(super) use crate::objects::EdgeName;

/// Opened snapshot in memory, with the results computed over it.
pub trait HeapView: Objects {
    /// Graph of the nodes and edges.
    fn graph(&self) -> &Graph;
    /// Incoming edges of each node.
    fn retainers(&self) -> &Retainers;
    /// Dominators over the edges that keep their target alive, in either capture mode. References
    /// from outside the program into its objects are ignored, so that the program owns them.
    fn dominators(&self) -> &Dominators;
    /// Bytes of V8's internal objects that are counted for their owners, in both capture modes.
    fn moved_bytes(&self) -> &[MovedBytes];
    /// Functions in which an object was allocated, innermost first. Empty without an allocation
    /// trace.
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

/// Returns the target of the first field with one of these names.
pub(super) fn field(heap: &impl HeapView, node: u32, names: &[&str]) -> Option<u32> {
    heap.graph().edges(node).find_map(|edge| match heap.edge_name(edge) {
        EdgeName::Name(name) if names.contains(&name.as_ref()) => Some(heap.graph().target(edge)),
        _ => None,
    })
}
