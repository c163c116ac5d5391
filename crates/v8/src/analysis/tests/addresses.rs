//! Heaps of other languages, in which nothing moves.

use super::super::{MatchedBy, compare};
use super::made_heap::MadeHeap;

/// Contents that never change, as bits of an id.
fn told(address: u64, identity: u64) -> u64 {
    address | 1 | identity << 47
}

/// A list of quotes, each with a symbol of its own and a venue that all have.
fn quotes(count: u64, first_symbol: u64) -> MadeHeap {
    let mut heap = MadeHeap::new();
    let module = heap.node_with_id("object", "module pricing", 72, told(64, 7), false);
    heap.edge(0, "shortcut", "1", module);
    let list = heap.node_with_id("object", "list", 56 + 8 * count, told(128, 0), false);
    heap.edge(module, "property", "QUOTES", list);
    let venue = heap.node_with_id("object", "str", 52, told(192, 9), false);
    for number in 0..count {
        let quote = heap.node_with_id("object", "pricing.Quote", 48, told(4096 + 64 * number, 0), false);
        heap.edge(list, "element", &number.to_string(), quote);
        let identity = 1 + (number + first_symbol) % 63;
        let symbol = heap.node_with_id("object", "str", 54, told((1 << 20) | (64 * number), identity), false);
        heap.edge(quote, "property", "symbol", symbol);
        heap.edge(quote, "property", "venue", venue);
    }
    heap.with_addresses()
}

#[test]
fn objects_at_used_addresses_are_told_from_those_that_stay() {
    let (before, same, other) = (quotes(200, 0).open(1), quotes(200, 0).open(1), quotes(200, 1).open(1));
    let compared = compare(&before, &same);
    assert_eq!(compared.matched_by, MatchedBy::Address);
    assert!(compared.classes.is_empty(), "{compared:?}");
    // Nothing but their addresses tells the list and the quotes.
    assert_eq!((compared.kept_count, compared.by_address_count), (403, 201));
    let compared = compare(&before, &other);
    let of = |class: &str| compared.classes.iter().find(|line| line.class.name_text() == class).unwrap();
    let (text, quote) = (of("str"), of("pricing.Quote"));
    assert_eq!((text.new_count, text.deleted_count, text.refilled_count), (200, 200, 0));
    assert_eq!((quote.new_count, quote.deleted_count, quote.refilled_count), (0, 0, 200));
}
