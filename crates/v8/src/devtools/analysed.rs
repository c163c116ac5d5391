//! The heap as the analyses want to see it.

use std::borrow::Cow;

use heapr_graph::{Dominators, Graph, Retainers};

use crate::analysis;
use crate::devtools::Heap;
use crate::{DomState, EdgeKind, Location, NodeKind};

impl analysis::Heap for Heap {
    fn graph(&self) -> &Graph {
        self.snapshot().graph()
    }

    fn retainers(&self) -> &Retainers {
        self.retainers()
    }

    fn dominators(&self) -> &Dominators {
        self.dominators()
    }

    fn retained_bytes(&self, node: u32) -> u64 {
        self.retained()[node as usize]
    }

    fn self_bytes(&self, node: u32) -> u64 {
        self.snapshot().self_bytes(node)
    }

    fn id(&self, node: u32) -> u64 {
        self.snapshot().id(node)
    }

    fn kind(&self, node: u32) -> NodeKind {
        self.snapshot().kind(node)
    }

    fn name_index(&self, node: u32) -> u32 {
        self.snapshot().name_number(node)
    }

    fn string_count(&self) -> u32 {
        self.snapshot().strings().count()
    }

    fn string(&self, index: u32) -> Cow<'_, str> {
        self.snapshot().strings().text(index)
    }

    fn edge_kind(&self, edge: u32) -> EdgeKind {
        self.snapshot().edge_kind(edge)
    }

    fn edge_name_index(&self, edge: u32) -> u32 {
        self.snapshot().edge_name_number(edge)
    }

    fn distance(&self, node: u32) -> u32 {
        // What cannot be reached has a negative one.
        u32::try_from(self.distances()[node as usize]).unwrap_or(u32::MAX)
    }

    fn location(&self, node: u32) -> Option<Location> {
        self.snapshot().locations().of(node)
    }

    fn locations(&self) -> &[Location] {
        self.snapshot().locations().all()
    }

    fn is_detached(&self, node: u32) -> bool {
        self.snapshot().dom_state(node) == DomState::Detached
    }
}
