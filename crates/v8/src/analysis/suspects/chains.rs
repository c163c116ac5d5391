//! Lists whose links hang from one another: the list grows, not its last link.
//!
//! ```text
//!  JobQueue .first   Job .next   Job .next   Job .next   (new ones)
//!  ^ the holder      ^ links: the same class holds the next one by the same field, at least three times
//!
//!  Context .current  Object .describe  function .context  Context .previous  Object .describe  ...
//!  ^ the holder      ^ links of three objects each
//! ```

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::classes::{Classes, Names};
use super::super::heap_view::HeapView;
use super::growth::{Growth, Holding};
use super::ownership::Ownership;

/// So many holdings are looked at, the largest first; what grew less is no suspect.
const MAX_HOLDINGS: usize = 500;
/// A list has at least so many links.
const LEAST_LINKS: u32 = 3;
/// Objects that one link is made of, at most.
const MAX_OBJECTS_OF_LINK: usize = 6;

/// Moves growth from the last links of lists to what holds their first.
pub(super) fn move_to_lists<H: HeapView>(
    heap: &H,
    ownership: &Ownership,
    all: &mut FxHashMap<Holding, Growth>,
    names: &mut Names,
) {
    let mut largest: Vec<(i64, Holding)> = all
        .iter()
        .map(|(&holding, growth)| (-growth.bytes, holding))
        .filter(|&(bytes, _)| bytes < 0)
        .collect();
    largest.sort_unstable();
    let mut classes = Classes::of(heap);
    for (_, holding) in largest.into_iter().take(MAX_HOLDINGS) {
        let Some((owner, field)) = holder_of_list(heap, ownership, holding, &mut classes, names) else {
            continue;
        };
        let Some(growth) = all.remove(&holding) else { continue };
        all.entry(Holding::new(owner, field)).or_default().add(growth);
    }
}

fn holder_of_list<H: HeapView>(
    heap: &H,
    ownership: &Ownership,
    holding: Holding,
    classes: &mut Classes,
    names: &mut Names,
) -> Option<(u32, u32)> {
    let root = heap.dominators().root();
    let link = (classes.class(heap, names, holding.owner), holding.field);
    let mut of_list = FxHashSet::from_iter([link]);
    let mut since_last_link = Vec::new();
    let mut link_count = 1;
    let mut at = holding.owner;
    while at != root {
        let field = ownership.field(at);
        at = ownership.owner[heap.dominators().idom(at) as usize];
        let pair = (classes.class(heap, names, at), field);
        if pair == link {
            link_count += 1;
            of_list.extend(since_last_link.drain(..));
        } else if link_count < LEAST_LINKS || !of_list.contains(&pair) {
            since_last_link.push(pair);
            // What comes after the first link and is none of the links' objects holds the list.
            if link_count >= LEAST_LINKS {
                return Some((at, field));
            }
            if since_last_link.len() > MAX_OBJECTS_OF_LINK {
                return None;
            }
        }
    }
    None
}
