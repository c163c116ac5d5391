//! Classes whose objects are collections, each looked up once by the number of its name.

use super::heap_view::HeapView;
use crate::NodeKind;

/// Answers that were given, by the number of the name.
#[derive(Debug)]
pub(super) struct CollectionClasses {
    known: Vec<Known>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    NotYet,
    Collection,
    Other,
}

impl CollectionClasses {
    pub(super) fn of(heap: &impl HeapView) -> Self {
        Self { known: vec![Known::NotYet; heap.string_count() as usize] }
    }

    /// Whether a node of another language than JavaScript is a collection.
    pub(super) fn is_collection(&mut self, heap: &impl HeapView, node: u32) -> bool {
        if heap.kind(node) != NodeKind::OBJECT {
            return false;
        }
        let name = heap.name_index(node);
        let ask = || {
            let dialect = heap.meta().dialect.as_ref();
            dialect.is_some_and(|dialect| dialect.is_collection(&heap.string(name)))
        };
        let Some(known) = self.known.get_mut(name as usize) else { return ask() };
        if *known == Known::NotYet {
            *known = if ask() { Known::Collection } else { Known::Other };
        }
        *known == Known::Collection
    }
}
