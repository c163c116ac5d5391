//! Lists of the objects of some classes, if nodes are known by class: only these nodes are read.

use std::ops::Range;

use crate::index::END_ROWS;
use crate::objects::{NodeNumber, ObjectOrder, Objects, Page};
use crate::view::name_order::by_name;
use crate::view::query::ObjectQuery;
use crate::view::sorted_rows::page_of;

/// Returns a page of the nodes that match a query, and their number. Returns `None` unless the
/// query only names classes, self sizes above 0 and some nodes, and nodes are known by class.
pub(super) fn list(
    objects: &dyn Objects,
    query: &ObjectQuery<'_>,
    order: ObjectOrder,
    page: Page,
) -> Option<(Vec<u32>, usize)> {
    let (classes, is_with_bytes) = asked_for(query)?;
    let mut parts: Vec<(u32, Range<u32>)> = Vec::new();
    let class_count = objects.class_list().len();
    for class in classes.chunk_by(PartialEq::eq).map(|same| same[0]) {
        if class as usize >= class_count {
            continue;
        }
        let [with_bytes, without] = objects.class_rows(class)?;
        parts.push((class, with_bytes));
        if !is_with_bytes {
            parts.push((class, without));
        }
    }
    parts.retain(|(_, part)| !part.is_empty());
    if query.only.is_none() {
        let total = parts.iter().map(|(_, part)| part.len()).sum();
        let rows = page.range(total);
        if rows.is_empty() {
            return Some((Vec::new(), total));
        }
        if let ([(_, part)], ObjectOrder::Retained) = (parts.as_slice(), order) {
            let nodes = part.start + rows.start as u32..part.start + rows.end as u32;
            return Some((objects.nodes_by_class(nodes), total));
        }
        if is_with_bytes && let Some(nodes) = near_an_end(objects, &parts, order, rows, total) {
            return Some((nodes, total));
        }
    }
    let mut nodes: Vec<u32> = parts.into_iter().flat_map(|(_, part)| objects.nodes_by_class(part)).collect();
    if let Some(only) = query.only {
        nodes.retain(|&node| only.contains(node));
    }
    let total = nodes.len();
    Some((sorted(objects, nodes, order, page.range(total)), total))
}

/// Returns rows near the start or the end of a list of objects with self sizes above 0. Such rows
/// are near the same end of one class's list.
fn near_an_end(
    objects: &dyn Objects,
    parts: &[(u32, Range<u32>)],
    order: ObjectOrder,
    rows: Range<usize>,
    total: usize,
) -> Option<Vec<u32>> {
    let is_start = rows.end <= END_ROWS;
    if !is_start && total - rows.start > END_ROWS {
        return None;
    }
    let end_of = |class: u32, part: &Range<u32>| {
        match order {
            _ if part.len() <= END_ROWS => None,
            ObjectOrder::Retained if is_start => Some(part.start..part.start + END_ROWS as u32),
            ObjectOrder::Retained => Some(part.end - END_ROWS as u32..part.end),
            _ => return objects.class_end(class, order, is_start),
        }
        .map(|some| objects.nodes_by_class(some))
    };
    let ends = parts
        .iter()
        .map(|(class, part)| end_of(*class, part).unwrap_or_else(|| objects.nodes_by_class(part.clone())));
    let nodes: Vec<u32> = ends.flatten().collect();
    let left_out = if is_start { 0 } else { total.saturating_sub(nodes.len()) };
    let rows = rows.start.saturating_sub(left_out)..rows.end.saturating_sub(left_out);
    if let [(_, part)] = parts
        && part.len() > nodes.len()
    {
        // An end is already in order.
        return Some(nodes.get(rows).unwrap_or_default().to_vec());
    }
    Some(sorted(objects, nodes, order, rows))
}

/// Returns the classes of the query, and whether only objects with self sizes above 0 match.
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
