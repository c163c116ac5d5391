//! Linked lists: the growth belongs to the list, not to its last link.
//!
//! ```text
//!  JobQueue .first   Job .next   Job .next   Job .next   (new ones)
//!  ^ holder          ^ links: one class holds the next link by one field, at least three times
//!
//!  Context .current  Object .describe  function .context  Context .previous  Object .describe  ...
//!  ^ holder          ^ links of three objects each
//! ```

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::classes::{Classes, Names};
use super::super::heap_view::HeapView;
use super::growth::{Growth, Holding};
use super::ownership::Ownership;

/// Largest number of holdings that are examined, largest first. Smaller growth makes no suspect.
const MAX_HOLDINGS: usize = 500;
/// Least number of links in a list.
const LEAST_LINKS: u32 = 3;
/// Largest number of objects that one link consists of.
const MAX_OBJECTS_OF_LINK: usize = 6;

/// Moves growth from the last links of lists to the holders of their first links.
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
            // The first object after the links that is not part of a link holds the list.
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
