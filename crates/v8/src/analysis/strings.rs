//! Texts that are in memory more than once.

use rustc_hash::FxHashMap;

use super::heap_view::HeapView;
use crate::NodeKind;

/// V8 writes this many characters of a text; longer ones are only known to begin alike.
const WRITTEN_CHARS: usize = 1024;

/// A text with several copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicatedString {
    /// The text, as far as the snapshot has it.
    pub text: String,
    /// How many strings have it.
    pub count: u64,
    /// The bytes of all of them.
    pub total_bytes: u64,
    /// The bytes of all but the smallest one.
    pub wasted_bytes: u64,
    /// One of them.
    pub example: u32,
    /// Whether the text is cut, so that the strings may differ further on.
    pub is_cut: bool,
}

/// The `top` texts that waste most, flat strings only: parts of others have no text of their own.
pub fn duplicated_strings(heap: &impl HeapView, top: usize) -> Vec<DuplicatedString> {
    #[derive(Clone, Copy)]
    struct Sum {
        count: u64,
        bytes: u64,
        smallest: u64,
        example: u32,
    }
    let mut by_index: FxHashMap<u32, Sum> = FxHashMap::default();
    for node in 0..heap.graph().node_count() {
        let bytes = heap.self_bytes(node);
        if heap.kind(node) != NodeKind::STRING || bytes == 0 {
            continue;
        }
        by_index
            .entry(heap.name_index(node))
            .and_modify(|sum| {
                sum.count += 1;
                sum.bytes = sum.bytes.saturating_add(bytes);
                sum.smallest = sum.smallest.min(bytes);
            })
            .or_insert(Sum { count: 1, bytes, smallest: bytes, example: node });
    }
    let mut found: Vec<(u32, Sum)> = by_index.into_iter().filter(|(_, sum)| sum.count > 1).collect();
    found.sort_by_key(|(index, sum)| (std::cmp::Reverse(sum.bytes - sum.smallest), *index));
    found.truncate(top);
    found
        .into_iter()
        .map(|(index, sum)| {
            let text = heap.string(index).into_owned();
            let is_cut = text.encode_utf16().count() >= WRITTEN_CHARS;
            DuplicatedString {
                text,
                count: sum.count,
                total_bytes: sum.bytes,
                wasted_bytes: sum.bytes - sum.smallest,
                example: sum.example,
                is_cut,
            }
        })
        .collect()
}
