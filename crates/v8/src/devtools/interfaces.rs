//! Names for plain objects: objects with the same properties share an "interface" `{a, b}`.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use crate::devtools::name_set::NameSet;
use crate::format::{compare_utf16, utf16_length};
use crate::{EdgeKind, NodeKind, Snapshot};

/// Set of properties that makes an interface, and its name.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct InterfaceDefinition {
    /// Name, such as `{a, b}`.
    pub name: Vec<u8>,
    /// Properties in the order in which the objects have them.
    pub properties: Vec<Vec<u8>>,
}

/// Largest length of a name in UTF-16 units; the first property may exceed it.
const NAME_LIMIT: usize = 120;
/// Least number of objects that an interface must match.
const LEAST_COUNT: f64 = 2.0;
/// Divisor of the number of plain objects: an interface must match at least this fraction.
const LEAST_SHARE: f64 = 1000.0;

/// Plain objects and their lists of properties.
#[derive(Debug, Default)]
pub(crate) struct PlainObjects {
    /// Plain objects, each with the number of its shape.
    pub(crate) shape_of: Vec<(u32, u32)>,
    /// String numbers of the properties of each shape, without `__proto__`.
    pub(crate) shapes: Vec<Box<[u32]>>,
    counts: Vec<u64>,
}

impl PlainObjects {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let plain_names = NameSet::of(&snapshot.strings, |text| text == b"Object");
        let proto_names = NameSet::of(&snapshot.strings, |text| text == b"__proto__");
        let mut found = Self::default();
        let mut numbers: FxHashMap<Box<[u32]>, u32> = FxHashMap::default();
        let mut properties = Vec::new();
        for node in 0..snapshot.node_count() {
            if snapshot.kind(node) != NodeKind::OBJECT || !plain_names.contains(snapshot.name_number(node)) {
                continue;
            }
            properties.clear();
            properties.extend(
                snapshot
                    .graph
                    .edges(node)
                    .filter(|&edge| snapshot.edge_kind(edge) == EdgeKind::PROPERTY)
                    .map(|edge| snapshot.edge_name_number(edge))
                    .filter(|&name| !proto_names.contains(name)),
            );
            let shape = match numbers.get(&properties[..]) {
                Some(&shape) => shape,
                None => {
                    let shape = found.shapes.len() as u32;
                    numbers.insert(properties.clone().into_boxed_slice(), shape);
                    found.shapes.push(properties.clone().into_boxed_slice());
                    found.counts.push(0);
                    shape
                }
            };
            found.counts[shape as usize] += 1;
            found.shape_of.push((node, shape));
        }
        found
    }

    /// Returns the interfaces that enough of the objects have, most frequent first.
    pub(crate) fn infer(&self, snapshot: &Snapshot) -> Vec<InterfaceDefinition> {
        let mut candidates: Vec<(InterfaceDefinition, u64)> = Vec::new();
        let mut by_name: FxHashMap<Vec<u8>, usize> = FxHashMap::default();
        for (shape, &count) in self.shapes.iter().zip(&self.counts) {
            let Some(definition) = definition(snapshot, shape) else { continue };
            match by_name.get(&definition.name) {
                Some(&at) => candidates[at].1 += count,
                None => {
                    by_name.insert(definition.name.clone(), candidates.len());
                    candidates.push((definition, count));
                }
            }
        }
        let total = self.shape_of.len() as f64;
        let least = LEAST_COUNT.max(total / LEAST_SHARE);
        // The sort is stable: of equally frequent interfaces the first in the snapshot comes first.
        candidates.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        candidates
            .into_iter()
            .take_while(|&(_, count)| count as f64 >= least)
            .map(|(definition, _)| definition)
            .collect()
    }

    /// Returns for each shape the definition that fits it best.
    pub(crate) fn best_matches(
        &self,
        snapshot: &Snapshot,
        definitions: &[InterfaceDefinition],
    ) -> Vec<Option<usize>> {
        let tree = PropertyTree::of(definitions);
        self.shapes
            .iter()
            .map(|shape| {
                let mut properties: Vec<&[u8]> =
                    shape.iter().map(|&name| snapshot.strings.get(name)).collect();
                properties.sort_by(|left, right| compare_utf16(left, right));
                tree.best_match(&properties)
            })
            .collect()
    }
}

fn definition(snapshot: &Snapshot, shape: &[u32]) -> Option<InterfaceDefinition> {
    let mut name = b"{".to_vec();
    let mut name_units = 1;
    let mut properties = Vec::new();
    for &number in shape {
        let property = snapshot.strings.get(number);
        let formatted = format_property_name(property);
        let units = utf16_length(&formatted);
        if name_units > 1 && name_units + units > NAME_LIMIT {
            break;
        }
        if name_units != 1 {
            name.extend_from_slice(b", ");
            name_units += 2;
        }
        name.extend_from_slice(&formatted);
        name_units += units;
        properties.push(property.to_vec());
    }
    name.push(b'}');
    (!properties.is_empty()).then_some(InterfaceDefinition { name, properties })
}

/// Formats a property's name for an interface: quoted if a character would be confusing.
pub(crate) fn format_property_name(name: &[u8]) -> Vec<u8> {
    if !name.iter().any(|byte| b",'\"{}".contains(byte)) {
        return name.to_vec();
    }
    let mut quoted = vec![b'"'];
    let mut rest = name;
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'"' | b'\\' => quoted.extend_from_slice(&[b'\\', byte]),
            8 => quoted.extend_from_slice(b"\\b"),
            9 => quoted.extend_from_slice(b"\\t"),
            10 => quoted.extend_from_slice(b"\\n"),
            12 => quoted.extend_from_slice(b"\\f"),
            13 => quoted.extend_from_slice(b"\\r"),
            0..0x20 => quoted.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            // Lone surrogate.
            0xed if after.len() >= 2 && after[0] >= 0xa0 => {
                let unit = 0xd000 | u32::from(after[0] & 0x3f) << 6 | u32::from(after[1] & 0x3f);
                quoted.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                rest = &after[2..];
                continue;
            }
            _ => quoted.push(byte),
        }
        rest = after;
    }
    quoted.push(b'"');
    quoted
}

/// Definitions as a tree: each step adds a property, in the order of names.
struct PropertyTree<'a> {
    steps: Vec<Step<'a>>,
}

#[derive(Default)]
struct Step<'a> {
    next: FxHashMap<&'a [u8], usize>,
    /// Number of properties and index of the definition that ends here.
    ends: Option<(usize, usize)>,
    /// Greatest name that leads on from this step.
    greatest: Option<&'a [u8]>,
}

impl<'a> PropertyTree<'a> {
    fn of(definitions: &'a [InterfaceDefinition]) -> Self {
        let mut steps = vec![Step::default()];
        for (at, definition) in definitions.iter().enumerate() {
            let mut properties: Vec<&[u8]> = definition.properties.iter().map(Vec::as_slice).collect();
            properties.sort_by(|left, right| compare_utf16(left, right));
            let mut step = 0;
            for &property in &properties {
                step = match steps[step].next.get(property) {
                    Some(&next) => next,
                    None => {
                        let next = steps.len();
                        steps.push(Step::default());
                        let from = &mut steps[step];
                        from.next.insert(property, next);
                        if from
                            .greatest
                            .is_none_or(|greatest| compare_utf16(greatest, property) == Ordering::Less)
                        {
                            from.greatest = Some(property);
                        }
                        next
                    }
                };
            }
            steps[step].ends.get_or_insert((properties.len(), at));
        }
        Self { steps }
    }

    /// Returns the index of the definition with most of the sorted properties; the first among
    /// equals.
    fn best_match(&self, properties: &[&[u8]]) -> Option<usize> {
        let mut best = self.steps[0].ends;
        let mut states = vec![0];
        for (at, &property) in properties.iter().enumerate() {
            // Each step of the tree has one predecessor. Only a repeated property reaches a step
            // twice.
            let is_repeated = at > 0 && properties[at - 1] == property;
            let mut reached = Vec::new();
            states.retain(|&state| {
                let step: &Step<'_> = &self.steps[state];
                reached.extend(step.next.get(property));
                step.greatest.is_some_and(|greatest| compare_utf16(property, greatest) == Ordering::Less)
            });
            for state in reached {
                if !is_repeated || !states.contains(&state) {
                    states.push(state);
                }
                best = match (best, self.steps[state].ends) {
                    (Some(old), Some(new)) if new.0 > old.0 || (new.0 == old.0 && new.1 < old.1) => Some(new),
                    (None, new) => new,
                    (old, _) => old,
                };
            }
        }
        best.map(|(_, at)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions(all: &[&[&str]]) -> Vec<InterfaceDefinition> {
        let bytes = |text: &&str| text.as_bytes().to_vec();
        all.iter()
            .map(|names| InterfaceDefinition {
                name: Vec::new(),
                properties: names.iter().map(bytes).collect(),
            })
            .collect()
    }

    #[test]
    fn the_definition_with_the_most_properties_wins_then_the_first() {
        let definitions = definitions(&[&["a", "b"], &["b", "a"], &["c", "b", "a"], &["d"], &["a", "c"]]);
        let tree = PropertyTree::of(&definitions);
        let matched =
            |names: &[&str]| tree.best_match(&names.iter().map(|name| name.as_bytes()).collect::<Vec<_>>());
        assert_eq!(matched(&["a", "b"]), Some(0));
        assert_eq!(matched(&["a", "b", "c", "d"]), Some(2));
        assert_eq!(matched(&["a", "c", "d"]), Some(4));
        assert_eq!(matched(&["a", "d", "e"]), Some(3));
        assert_eq!(matched(&["a"]), None);
    }

    #[test]
    fn names_with_confusing_characters_are_quoted() {
        assert_eq!(format_property_name(b"a b"), b"a b");
        assert_eq!(format_property_name(b"a,\"\n\x01"), b"\"a,\\\"\\n\\u0001\"");
        assert_eq!(format_property_name(b"{\xed\xa0\xbd"), b"\"{\\ud83d\"");
    }
}
