//! Objects in the order of their names. Each name is compared once, regardless of the number of
//! objects that have it.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::NodeKind;
use crate::devtools::DisplayNames;
use crate::objects::{NodeNumber, Objects};
use crate::view::sorted_rows::page_of;

/// Number of objects up to which names are sorted directly.
const FEW: usize = 2048;

/// Returns some rows of nodes in the order of the names that lists show; equal names are in the
/// order of nodes.
pub(crate) fn by_name(objects: &dyn Objects, mut nodes: Vec<u32>, rows: Range<usize>) -> Vec<u32> {
    if nodes.len() <= FEW {
        let mut names = DisplayNames::default();
        nodes.sort_by_cached_key(|&node| (names.of(objects, node).into_owned(), node));
        return nodes.get(rows).unwrap_or_default().to_vec();
    }
    nodes.sort();
    let mut names = Names::default();
    let (names_of, unused_count) = numbered(objects, &nodes, &mut names);
    let ranks = names.ranks(rows.end.saturating_add(unused_count));
    page_of(names_of.into_iter().map(|name| ranks[name as usize].into()).zip(nodes).collect(), rows)
}

/// Returns the number of each node's name in `names`, and how many of those names may be unused.
/// The nodes must ascend.
fn numbered(objects: &dyn Objects, nodes: &[u32], names: &mut Names) -> (Vec<u32>, usize) {
    const NONE: u32 = u32::MAX;
    const CONS_STRING: u64 = NodeKind::CONS_STRING.number() as u64;
    const OBJECT: u64 = NodeKind::OBJECT.number() as u64;
    const PLAIN_OBJECT: &[u8] = b"Object";
    let strings = objects.numbers_of(NodeNumber::NameIndex, nodes);
    let kinds = objects.numbers_of(NodeNumber::Kind, nodes);
    let mut is_asked = vec![false; objects.string_count() as usize];
    for (&string, _) in strings.iter().zip(&kinds).filter(|&(_, &kind)| kind != CONS_STRING) {
        if let Some(is_asked) = is_asked.get_mut(string as usize) {
            *is_asked = true;
        }
    }
    // Name of each string that is used as one.
    let mut of_string = vec![NONE; is_asked.len()];
    let mut plain_count = 0;
    objects.visit_strings(0..objects.string_count(), &mut |number, text| {
        if is_asked[number as usize] {
            of_string[number as usize] = names.add(text);
            plain_count += usize::from(text == PLAIN_OBJECT);
        }
    });
    let shapes = if plain_count > 0 {
        objects.known_shapes(0..objects.node_count()).unwrap_or_default()
    } else {
        Vec::new()
    };
    let mut shapes = shapes.into_iter().peekable();
    let mut of_shape: FxHashMap<u32, u32> = FxHashMap::default();
    let mut empty = None;
    let mut display = DisplayNames::default();
    let mut name_of = |node: u32, string: u64, kind: u64| {
        let name = of_string.get(string as usize).copied().filter(|&name| name != NONE);
        if kind == CONS_STRING {
            return names.add(&display.of(objects, node));
        }
        if kind == OBJECT && name.is_some_and(|name| names.get(name) == PLAIN_OBJECT) {
            while shapes.next_if(|&(before, _)| before < node).is_some() {}
            return match shapes.next_if(|&(found, _)| found == node) {
                Some((_, shape)) => {
                    *of_shape.entry(shape).or_insert_with(|| names.add(&display.of(objects, node)))
                }
                None => names.add(&display.of(objects, node)),
            };
        }
        // A string number that is too large stands for an empty name.
        name.unwrap_or_else(|| *empty.get_or_insert_with(|| names.add(b"")))
    };
    let columns = nodes.iter().zip(strings).zip(kinds);
    (columns.map(|((&node, string), kind)| name_of(node, string, kind)).collect(), plain_count)
}

/// Names, stored one after the other; duplicates are possible.
#[derive(Default)]
struct Names {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Names {
    fn add(&mut self, name: &[u8]) -> u32 {
        self.text.extend_from_slice(name);
        self.ends.push(self.text.len());
        (self.ends.len() - 1) as u32
    }

    fn get(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let begin = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.text[begin..self.ends[number]]
    }

    /// Returns the rank of each name, equal for equal names. Only the first `count` in order are
    /// ranked; the others get `u32::MAX`.
    fn ranks(&self, count: usize) -> Vec<u32> {
        let start = |name: &[u8]| {
            let mut first = [0; 8];
            let length = name.len().min(8);
            first[..length].copy_from_slice(&name[..length]);
            u64::from_be_bytes(first)
        };
        // The first letters are stored next to the numbers: most comparisons need no more.
        let mut order: Vec<(u64, u32)> =
            (0..self.ends.len() as u32).map(|name| (start(self.get(name)), name)).collect();
        let compare = |one: &(u64, u32), other: &(u64, u32)| {
            one.0.cmp(&other.0).then_with(|| self.get(one.1).cmp(self.get(other.1)))
        };
        let mut ranks = vec![u32::MAX; order.len()];
        if count < order.len() {
            order.select_nth_unstable_by(count, compare);
        }
        let border = count.min(order.len());
        let (first, others) = order.split_at_mut(border);
        first.sort_unstable_by(compare);
        let mut rank = 0;
        let mut last = None;
        for &mut (_, name) in first {
            if last.is_some_and(|last| self.get(last) != self.get(name)) {
                rank += 1;
            }
            last = Some(name);
            ranks[name as usize] = rank;
        }
        // Names that equal the last ranked one get the same rank; then the node decides.
        for &mut (_, name) in others {
            if last.is_some_and(|last| self.get(last) == self.get(name)) {
                ranks[name as usize] = rank;
            }
        }
        ranks
    }
}
