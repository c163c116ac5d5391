//! Texts that are in memory more than once.

use crate::devtools::{DuplicateStrings, Heap};
use crate::objects::Objects;

/// Number of characters that V8 writes of a text. Longer texts are only known to begin alike.
const WRITTEN_CHARS: usize = 1024;

/// Text with several copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicatedString {
    /// Text, as far as the snapshot contains it.
    pub text: String,
    /// Number of strings with this text.
    pub count: u64,
    /// Bytes of all copies.
    pub total_bytes: u64,
    /// Bytes of all copies but the smallest one.
    pub wasted_bytes: u64,
    /// Node of one copy.
    pub example: u32,
    /// Whether the text is cut, so that the strings may differ further on.
    pub is_cut: bool,
}

/// Returns the `top` texts that waste most, concatenated strings included.
pub fn duplicated_strings(heap: &Heap, top: usize) -> Vec<DuplicatedString> {
    let mut found: Vec<(u64, Vec<u32>)> = DuplicateStrings::of(heap)
        .groups
        .into_iter()
        .map(|nodes| {
            let bytes = |node: &u32| text_bytes(heap, *node);
            let smallest = nodes.iter().map(bytes).min().unwrap_or(0);
            (nodes.iter().map(bytes).fold(0, u64::saturating_add) - smallest, nodes)
        })
        .collect();
    found.sort_by_key(|(wasted, nodes)| (std::cmp::Reverse(*wasted), nodes.first().copied()));
    found.truncate(top);
    found
        .into_iter()
        .filter_map(|(wasted_bytes, nodes)| {
            let example = *nodes.first()?;
            let text = heap.display_text(example);
            Some(DuplicatedString {
                is_cut: text.encode_utf16().count() >= WRITTEN_CHARS,
                text,
                count: nodes.len() as u64,
                total_bytes: nodes.iter().map(|&node| text_bytes(heap, node)).fold(0, u64::saturating_add),
                wasted_bytes,
                example,
            })
        })
        .collect()
}

/// Bytes of a text. In heaps of other languages its characters may be a node of their own.
fn text_bytes(heap: &Heap, node: u32) -> u64 {
    if heap.snapshot().meta().dialect.is_some() { heap.retained_bytes(node) } else { heap.self_bytes(node) }
}
