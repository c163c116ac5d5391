//! Selection of some rows of a sorted list without sorting the rest.

use crate::objects::{NodeNumber, Objects, Page};

/// Returns some rows of the nodes, sorted by their keys; only these rows are sorted.
pub(super) fn page_of(mut keyed: Vec<(u64, u32)>, rows: std::ops::Range<usize>) -> Vec<u32> {
    if rows.end < keyed.len() {
        keyed.select_nth_unstable(rows.end);
        keyed.truncate(rows.end);
    }
    if 0 < rows.start && rows.start < keyed.len() {
        keyed.select_nth_unstable(rows.start);
    }
    let page = keyed.get_mut(rows).unwrap_or_default();
    page.sort_unstable();
    page.iter().map(|&(_, node)| node).collect()
}

/// Returns a page of nodes, most retained bytes first.
pub(super) fn sorted_page(objects: &dyn Objects, nodes: &[u32], page: Page) -> Vec<u32> {
    let retained = objects.numbers_of(NodeNumber::RetainedBytes, nodes);
    let keyed = retained.into_iter().map(|bytes| u64::MAX - bytes).zip(nodes.iter().copied()).collect();
    page_of(keyed, page.range(nodes.len()))
}
