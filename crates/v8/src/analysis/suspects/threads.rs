//! Threads whose thread-local values an owner is.

use std::collections::BTreeSet;

use super::super::heap_view::HeapView;
use crate::NodeKind;

/// Largest number of dominators that are passed up to a thread's object.
const MAX_STEPS: usize = 64;
/// Largest number of threads that are named.
const MAX_NAMED: usize = 8;
/// Beginning of the names of roots that are threads.
const THREAD: &str = "thread ";

/// Names the threads that alone hold some owners: "is of the threads pool-0, pool-1".
pub(super) fn in_words<H: HeapView>(heap: &H, owners: &[u32]) -> Option<String> {
    let found: Option<BTreeSet<String>> = owners.iter().map(|&owner| thread_of(heap, owner)).collect();
    let names = found.filter(|names| !names.is_empty())?;
    let named: Vec<&str> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let noun = if names.len() == 1 { "thread" } else { "threads" };
    Some(format!("is of the {noun} {}{more}", named.join(", ")))
}

/// Returns the name of the thread whose object alone leads to a node.
fn thread_of<H: HeapView>(heap: &H, node: u32) -> Option<String> {
    let dominators = heap.dominators();
    let mut at = node;
    for _ in 0..MAX_STEPS {
        let above = dominators.idom(at);
        if above == at {
            return None;
        }
        at = above;
        let roots = heap.retainers().edges_into(at).iter().map(|&edge| heap.graph().source(edge));
        let threads = roots.filter(|&root| heap.kind(root) == NodeKind::NATIVE);
        let mut names = threads.filter_map(|root| Some(heap.name(root).strip_prefix(THREAD)?.to_owned()));
        if let Some(name) = names.next() {
            return Some(name);
        }
    }
    None
}
