//! Sizes of objects, which a dump of HotSpot does not say.
//!
//! An object has a header, its fields, and room up to a multiple of 8. Whether headers have 8, 12
//! or 16 bytes and references 4 or 8 depends on the virtual machine's options. Neighbours decide:
//! the least distance from an object of a class to the next object is the size of that class.

use rustc_hash::FxHashMap;

use super::census::Census;
use super::graph::{CLASS_OBJECT, Objects, primitive_of};
use super::records::Type;

/// Least number of objects of a class whose distances count.
const LEAST_COUNT: u32 = 8;
/// Largest number of bytes that the virtual machine adds to the fields of a class.
const INJECTED_MAX: u64 = 64;

/// Sizes of headers and references, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) header: u64,
    pub(super) reference: u64,
}

const KNOWN: [Sizes; 5] = [
    Sizes { header: 12, reference: 4 },
    Sizes { header: 8, reference: 4 },
    Sizes { header: 16, reference: 8 },
    Sizes { header: 12, reference: 8 },
    Sizes { header: 8, reference: 8 },
];

/// Distances of the objects of a class to the next objects.
#[derive(Debug, Clone, Copy)]
struct Distances {
    count: u32,
    least: u64,
    least_count: u32,
}

impl Sizes {
    /// Bytes of an instance with so many references and bytes of other fields.
    fn instance(self, references: u64, plain_bytes: u64) -> u64 {
        (self.header + references * self.reference + plain_bytes).next_multiple_of(8)
    }

    /// Bytes before the first item of an array of objects.
    pub(super) fn array_header(self) -> u64 {
        (self.header + 4).next_multiple_of(self.reference)
    }

    /// Bytes of an array.
    pub(super) fn array(self, kind: Type, count: u32) -> u64 {
        let of_one = if kind == Type::Object { self.reference } else { kind.bytes(8) as u64 };
        let begin = (self.header + 4).next_multiple_of(if of_one == 8 || self.header == 16 { 8 } else { 4 });
        (begin + u64::from(count) * of_one).next_multiple_of(8)
    }
}

/// Sizes of all objects, in bytes.
#[derive(Debug, Default)]
pub(super) struct OwnBytes {
    /// Size of each object; `u32::MAX` for those in `wide`.
    pub(super) narrow: Vec<u32>,
    pub(super) wide: FxHashMap<u32, u64>,
    /// Sizes that they are computed from.
    pub(super) sizes: Option<Sizes>,
}

impl OwnBytes {
    fn push(&mut self, bytes: u64) {
        let narrow = u32::try_from(bytes).unwrap_or(u32::MAX);
        if narrow == u32::MAX {
            self.wide.insert(self.narrow.len() as u32, bytes);
        }
        self.narrow.push(narrow);
    }
}

/// Computes the size of each object.
pub(super) fn sizes(census: &Census, objects: &Objects<'_>) -> OwnBytes {
    let distances = distances(census, objects);
    let is_exact = |sizes: Sizes, number: usize| {
        let class = &objects.classes[number];
        let of = &distances[number];
        of.count >= LEAST_COUNT && sizes.instance(class.reference_count, class.plain_bytes) == of.least
    };
    let count_of = |sizes: Sizes| (0..distances.len()).filter(|&number| is_exact(sizes, number)).count();
    // Of equally good ones the first is the commonest.
    let best = KNOWN.into_iter().rev().max_by_key(|&sizes| count_of(sizes)).unwrap_or(KNOWN[0]);
    let of_class: Vec<u64> = objects
        .classes
        .iter()
        .zip(&distances)
        .map(|(class, of)| {
            let computed = best.instance(class.reference_count, class.plain_bytes);
            let has_more = of.count >= LEAST_COUNT
                && of.least_count * 2 >= of.count
                && of.least > computed
                && of.least <= computed + INJECTED_MAX;
            match class.known_bytes {
                0 if has_more => of.least,
                0 => computed,
                known => u64::from(known).next_multiple_of(8),
            }
        })
        .collect();
    let mut all = OwnBytes { narrow: Vec::with_capacity(objects.class_of.len()), ..OwnBytes::default() };
    let of_statics = |id: u64| {
        let class = census.class_of_id.get(&id).and_then(|&number| census.classes.get(number as usize));
        best.instance(0, class.map_or(0, |record| record.static_bytes))
    };
    for ((&class, &count), &id) in objects.class_of.iter().zip(&objects.counts).zip(&census.ids) {
        let facts = objects.classes.get(class as usize);
        all.push(match (primitive_of(class), facts) {
            (Some(kind), _) => best.array(kind, count),
            (None, Some(facts)) if facts.is_array() => best.array(Type::Object, count),
            (None, Some(_)) => of_class[class as usize],
            _ if class == CLASS_OBJECT => of_statics(id),
            _ => 0,
        });
    }
    for bytes in objects.memories.own_bytes() {
        all.push(bytes);
    }
    all.sizes = Some(best);
    all
}

/// Distances of the instances of each class to the next objects.
fn distances(census: &Census, objects: &Objects<'_>) -> Vec<Distances> {
    let mut all = vec![Distances { count: 0, least: u64::MAX, least_count: 0 }; objects.classes.len()];
    let mut last: Option<(u64, u32)> = None;
    census.map.visit(|id, node| {
        if let Some((before, node_before)) = last.replace((id, node))
            && let Some(of) =
                objects.class_of.get(node_before as usize).and_then(|&class| all.get_mut(class as usize))
        {
            let distance = id - before;
            of.count += 1;
            match distance.cmp(&of.least) {
                std::cmp::Ordering::Less => (of.least, of.least_count) = (distance, 1),
                std::cmp::Ordering::Equal => of.least_count += 1,
                std::cmp::Ordering::Greater => {}
            }
        }
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_and_instances_have_the_sizes_of_hotspot() {
        let usual = KNOWN[0];
        assert_eq!(usual.instance(1, 5), 24); // java.lang.String
        assert_eq!(usual.instance(2, 0), 24);
        assert_eq!(usual.array(Type::Byte, 120), 136);
        assert_eq!(usual.array(Type::Object, 16), 80);
        assert_eq!(usual.array(Type::Long, 0), 16);
        let wide = Sizes { header: 16, reference: 8 };
        assert_eq!(wide.array(Type::Object, 1), 32);
        let compact = Sizes { header: 8, reference: 4 };
        assert_eq!(compact.array(Type::Byte, 4), 16);
        assert_eq!(compact.array(Type::Long, 1), 24);
    }
}
