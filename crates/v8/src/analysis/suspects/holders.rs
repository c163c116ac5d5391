//! Real owners of objects that are in two collections at once. Neither collection dominates the
//! objects, so their growth adds up at a common ancestor, often a module's variables or a root. The
//! real owners are the old collections that refer to the objects.

use rustc_hash::FxHashMap;

use super::super::classes::{Classes, Names};
use super::super::heap_view::HeapView;
use super::super::matching::{Matching, NOT_THERE};
use super::super::storage::is_storage;
use super::growth::{Growth, Holding};
use super::ownership::{NONE, has_field_name, is_collection, is_row};
use crate::{EdgeKind, NodeKind};

/// Least number of items for which a common holder is looked for.
const LEAST_ITEMS: usize = 5;
/// Largest number of retainers of an item that are examined. Its collections are among them unless
/// the item is very popular.
const MAX_RETAINERS: usize = 64;
/// Largest number of retainers of an object between a collection and an item.
const MAX_HOLDERS_OF_A_LINK: usize = 8;
/// Least share of the items that a holder must refer to, in percent, to be their owner.
const LEAST_SHARE_PERCENT: usize = 60;
/// Least share, in percent, where only a root holds all of the items: it says nothing of who does.
const LEAST_SHARE_BELOW_ROOTS_PERCENT: usize = 25;

/// Moves growth from common ancestors to the holders of the items, one class of items at a time.
pub(super) fn move_to_holders<H: HeapView>(
    (before, heap): (&H, &H),
    matching: &Matching,
    all: &mut FxHashMap<Holding, Growth>,
    names: &mut Names,
) {
    let mut moves: Vec<(Holding, Holding, Vec<u32>)> = Vec::new();
    let mut classes = Classes::of(heap);
    for (&holding, growth) in all.iter().filter(|(holding, _)| holding.item_class != NONE) {
        // A root holds unrelated things of all kinds, so its classes stay separate.
        let stays = match heap.kind(holding.owner) {
            NodeKind::SYNTHETIC => holding,
            _ => Holding::new(holding.owner, NONE),
        };
        let enough = growth.new_items.len() >= LEAST_ITEMS;
        let holders = if enough {
            holders_of((before, heap), matching, &growth.new_items, holding.owner)
        } else {
            Vec::new()
        };
        let Some(&(holder, _)) = holders.first() else {
            moves.push((holding, stays, Vec::new()));
            continue;
        };
        let field = match is_collection(heap, holder) {
            true => NONE,
            false => field_to(heap, holder, growth, &mut classes, names),
        };
        let others = holders[1..].iter().map(|&(other, _)| other).collect();
        moves.push((holding, Holding::new(holder, field), others));
    }
    moves.sort_by_key(|(from, ..)| *from);
    for (from, to, also_held_by) in moves {
        let Some(growth) = all.remove(&from) else { continue };
        let bytes = growth.bytes;
        let target = all.entry(to).or_default();
        target.add(growth);
        for other in also_held_by {
            *target.other_holders.entry(other).or_default() += bytes;
        }
    }
}

/// Returns the old objects that refer to most of `items`; among equals, the nearest to the roots
/// first.
fn holders_of<H: HeapView>(
    (before, heap): (&H, &H),
    matching: &Matching,
    items: &[u32],
    ancestor: u32,
) -> Vec<(u32, usize)> {
    let mut counts: FxHashMap<u32, usize> = FxHashMap::default();
    for &item in items {
        let mut of_item: Vec<u32> = Vec::new();
        for &edge in heap.retainers().edges_into(item).iter().take(MAX_RETAINERS) {
            if heap.edge_kind(edge) == EdgeKind::WEAK {
                continue;
            }
            let source = heap.graph().source(edge);
            of_item.extend(holders_of_link(heap, before, matching, source));
            let Some(holder) = old_holder(heap, matching, source) else { continue };
            if !has_grown(heap, before, matching, holder) {
                continue;
            }
            // A plain object that is used as a dictionary is not a link in a list of plain objects.
            let is_sibling = heap.kind(holder) == heap.kind(item)
                && heap.name(holder) == heap.name(item)
                && !is_collection(heap, holder);
            if holder != ancestor && !is_sibling && !of_item.contains(&holder) {
                of_item.push(holder);
            }
        }
        of_item.sort_unstable();
        of_item.dedup();
        for holder in of_item {
            *counts.entry(holder).or_default() += 1;
        }
    }
    let least_percent = if is_row(heap, ancestor) && heap.kind(ancestor) != NodeKind::SYNTHETIC {
        LEAST_SHARE_BELOW_ROOTS_PERCENT
    } else {
        LEAST_SHARE_PERCENT
    };
    let mut holders: Vec<(u32, usize)> =
        counts.into_iter().filter(|&(_, count)| count * 100 >= items.len() * least_percent).collect();
    holders.sort_by_key(|&(node, count)| (std::cmp::Reverse(count), heap.distance(node), node));
    holders
}

/// Whether a holder may have gained items. In heaps without stores of their own, a collection that
/// refers to no more objects than before only replaced some.
fn has_grown<H: HeapView>(heap: &H, before: &H, matching: &Matching, holder: u32) -> bool {
    let was = matching.earlier[holder as usize];
    !heap.meta().language().holds_items_itself()
        || was == NOT_THERE
        || !is_collection(heap, holder)
        || heap.edges(holder).len() > before.edges(was).len()
}

/// Returns the old collections that hold an item by a new object in between, as a bound method.
fn holders_of_link<H: HeapView>(heap: &H, before: &H, matching: &Matching, link: u32) -> Vec<u32> {
    if !heap.meta().language().holds_items_itself() || matching.earlier[link as usize] != NOT_THERE {
        return Vec::new();
    }
    let edges = heap.retainers().edges_into(link);
    let holders = edges.iter().take(MAX_HOLDERS_OF_A_LINK).filter_map(|&edge| {
        let holder = heap.graph().source(edge);
        let can_hold = heap.edge_kind(edge) != EdgeKind::WEAK && is_collection(heap, holder);
        (can_hold && matching.earlier[holder as usize] != NOT_THERE).then_some(holder)
    });
    holders.filter(|&holder| has_grown(heap, before, matching, holder)).collect()
}

/// Returns the object itself, or the owner of a store, if the earlier snapshot has it.
fn old_holder(heap: &impl HeapView, matching: &Matching, source: u32) -> Option<u32> {
    let mut at = source;
    for _ in 0..3 {
        if !is_storage(heap, at) {
            break;
        }
        at = heap.dominators().idom(at);
    }
    let can_hold = matches!(heap.kind(at), NodeKind::OBJECT | NodeKind::CLOSURE | NodeKind::NATIVE);
    (can_hold && matching.earlier[at as usize] != NOT_THERE).then_some(at)
}

fn field_to<H: HeapView>(
    heap: &H,
    holder: u32,
    growth: &Growth,
    classes: &mut Classes,
    names: &mut Names,
) -> u32 {
    let items = &growth.new_items;
    heap.graph()
        .edges(holder)
        .find(|&edge| items.contains(&heap.graph().target(edge)) && has_field_name(heap, edge))
        .map_or(NONE, |edge| classes.string(heap, names, heap.edge_name_index(edge)))
}
