//! Node's timer lists: one per duration, in a table keyed by duration.
//!
//! ```text
//!  timerListMap: Object [60000] -> TimersList -> Timeout -> Timeout -> …
//! ```

use super::super::heap_view::{EdgeName, HeapView};
use crate::{EdgeKind, NodeKind};

/// Largest number of retainers searched; a list has only a few.
const MAX_RETAINERS: usize = 64;

/// Describes the duration for which the timers of a list are set; `None` if `node` is not a timer
/// list.
pub(super) fn duration_in_words(heap: &impl HeapView, node: u32) -> Option<String> {
    if heap.kind(node) != NodeKind::OBJECT || heap.name(node) != "TimersList" {
        return None;
    }
    let holders = heap.retainers().edges_into(node);
    let duration_ms = holders.iter().take(MAX_RETAINERS).find_map(|&edge| {
        let table = heap.graph().source(edge);
        // The queue of timer lists is an array and holds them by position.
        let is_table = heap.kind(table) == NodeKind::OBJECT && heap.name(table) == "Object";
        match (heap.edge_kind(edge), heap.edge_name(edge)) {
            (EdgeKind::ELEMENT, EdgeName::Index(index)) if is_table => Some(index),
            _ => None,
        }
    })?;
    Some(format!("its timers are set for {duration_ms} ms"))
}
