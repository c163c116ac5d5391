//! The objects of some classes, where the snapshot knows its nodes by class: only those are looked at.

use std::ops::Range;

use crate::view::name_order::by_name;
use crate::view::search::page_of;
use crate::view::{NodeNumber, ObjectOrder, ObjectQuery, Objects, Page};

/// The nodes that a query is about, on a page, and how many there are: if it asks for no more than classes, for bytes of
/// their own and for some nodes, and if the nodes by class are known.
pub(super) fn list(
    objects: &dyn Objects,
    query: &ObjectQuery<'_>,
    order: ObjectOrder,
    page: Page,
) -> Option<(Vec<u32>, usize)> {
    let (classes, is_with_bytes) = asked_for(query)?;
    let mut parts: Vec<Range<u32>> = Vec::new();
    let class_count = objects.class_list().len();
    for class in classes.chunk_by(PartialEq::eq).map(|same| same[0]) {
        if class as usize >= class_count {
            continue;
        }
        let [with_bytes, without] = objects.class_rows(class)?;
        parts.push(with_bytes);
        if !is_with_bytes {
            parts.push(without);
        }
    }
    parts.retain(|part| !part.is_empty());
    if query.only.is_none() {
        let total = parts.iter().map(ExactSizeIterator::len).sum();
        let rows = page.range(total);
        if rows.is_empty() {
            return Some((Vec::new(), total));
        }
        if let ([part], ObjectOrder::Retained) = (parts.as_slice(), order) {
            let nodes = part.start + rows.start as u32..part.start + rows.end as u32;
            return Some((objects.nodes_by_class(nodes), total));
        }
    }
    let mut nodes: Vec<u32> = parts.into_iter().flat_map(|part| objects.nodes_by_class(part)).collect();
    if let Some(only) = query.only {
        nodes.retain(|&node| only.contains(node));
    }
    let total = nodes.len();
    Some((sorted(objects, nodes, order, page.range(total)), total))
}

/// The classes, and whether only objects with bytes of their own are wanted.
fn asked_for<'a>(query: &ObjectQuery<'a>) -> Option<(&'a [u32], bool)> {
    let is_more = query.name.is_some()
        || query.field.is_some()
        || query.text.is_some()
        || query.kind.is_some()
        || query.retained_bytes.is_some()
        || query.is_detached;
    let is_with_bytes = match query.self_bytes {
        None | Some((0, u64::MAX)) => false,
        Some((1, u64::MAX)) => true,
        Some(_) => return None,
    };
    if is_more { None } else { Some((query.classes?, is_with_bytes)) }
}

fn sorted(objects: &dyn Objects, nodes: Vec<u32>, order: ObjectOrder, rows: Range<usize>) -> Vec<u32> {
    let number = match order {
        ObjectOrder::Retained => NodeNumber::RetainedBytes,
        ObjectOrder::Shallow => NodeNumber::SelfBytes,
        ObjectOrder::Id => NodeNumber::Id,
        ObjectOrder::Distance => NodeNumber::Distance,
        ObjectOrder::Name => return by_name(objects, nodes, rows),
    };
    let is_most_first = matches!(order, ObjectOrder::Retained | ObjectOrder::Shallow);
    let keyed = objects
        .numbers_of(number, &nodes)
        .into_iter()
        .map(|key| if is_most_first { u64::MAX - key } else { key })
        .zip(nodes)
        .collect();
    page_of(keyed, rows)
}
