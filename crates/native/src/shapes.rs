//! Container types of blocks, recognised by the words around the reference to them. Each container
//! stores the length beside the address of its elements in its own pattern.
//!
//! ```text
//!  vector          | begin | end | end of room |        the room is the block, to the byte
//!  string          | place | length | capacity |        the block has a byte more than the capacity
//!  unordered_map   | buckets | count | first | elements | 1.0 ...
//!  deque           | map | count | start: current, first, last, place in the map | ...
//!  Vec, String     | capacity | place | length |
//!  HashMap         | behind the elements | count - 1 | room left | elements |
//! ```
//! A match of three words is proof because requested sizes are exact. Blocks from before an attach
//! have rounded sizes and are not recognised.

use heapr_trace::EdgeGrade;

use crate::block_map::{BlockMap, Hit};

/// Shape of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Shape {
    /// Unknown.
    None,
    /// Elements of `std::vector`, or of another container with three addresses.
    Vector,
    /// Text of `std::string`.
    String,
    /// Buckets of `std::unordered_map` or set.
    Buckets,
    /// Element of a table with [`Buckets`](Self::Buckets).
    HashNode,
    /// Map of `std::deque`.
    DequeMap,
    /// Elements of `std::deque`.
    DequeChunk,
    /// Node of `std::list`, or of any doubly linked ring.
    ListNode,
    /// Node of `std::map` or set.
    TreeNode,
    /// Elements of Rust's `Vec`, with capacity and length.
    Vec,
    /// Bytes of Rust's `String` or `Vec<u8>`.
    Bytes,
    /// Table of Rust's `HashMap`.
    HashMap,
    /// Block with a count of its owners: `Arc`, `Rc`.
    Shared,
}

impl Shape {
    /// Name in reports; `None` if unknown.
    pub(crate) fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::None => return None,
            Self::Vector => "elements of vector",
            Self::String => "text of string",
            Self::Buckets => "buckets of unordered_map or set",
            Self::HashNode => "node of unordered_map or set",
            Self::DequeMap => "map of deque",
            Self::DequeChunk => "elements of deque",
            Self::ListNode => "node of list",
            Self::TreeNode => "node of map or set",
            Self::Vec => "elements of Vec or the like",
            Self::Bytes => "text of String or the like",
            Self::HashMap => "table of HashMap",
            Self::Shared => "shared by Arc or the like",
        })
    }
}

/// A chain of elements: its first block, and the length that its container states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) first: u32,
    pub(crate) count: u64,
}

/// A word that leads into a block, with its neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around<'w> {
    words: &'w [[u8; 8]],
    at: usize,
}

/// Shape that the words around a reference prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) shape: Shape,
    /// Elements of a table with buckets.
    pub(crate) chain: Option<Chain>,
}

impl Seen {
    /// Grade of the reference, raised if the shape explains it.
    pub(crate) fn grade(&self, grade: EdgeGrade) -> EdgeGrade {
        if self.shape == Shape::HashMap { EdgeGrade::HashTable } else { grade }
    }
}

impl<'w> Around<'w> {
    pub(crate) fn of(words: &'w [[u8; 8]], at: usize) -> Self {
        Self { words, at }
    }

    /// The words, and the number of the one that leads into a block.
    pub(crate) fn words(&self) -> (&'w [[u8; 8]], usize) {
        (self.words, self.at)
    }

    fn after(&self, number: usize) -> Option<u64> {
        self.words.get(self.at + number).map(|word| u64::from_le_bytes(*word))
    }

    fn before(&self) -> Option<u64> {
        self.words.get(self.at.checked_sub(1)?).map(|word| u64::from_le_bytes(*word))
    }

    /// Shape of the block that the word leads to.
    #[inline(always)]
    pub(crate) fn shape(&self, map: &BlockMap, hit: Hit, grade: EdgeGrade) -> Option<Seen> {
        let size_bytes = map.size_bytes(hit.block as usize);
        let (next, second) = (self.after(1)?, self.after(2)?);
        let seen = |shape| Some(Seen { shape, chain: None });
        match grade {
            EdgeGrade::Start => {}
            EdgeGrade::Interior | EdgeGrade::OnePast => {
                return self
                    .is_hash_map(hit, size_bytes, next)
                    .then_some(Seen { shape: Shape::HashMap, chain: None });
            }
            _ => return None,
        }
        if size_bytes == 0 {
            return None;
        }
        let start_avma = map.address_avma(hit.block);
        let used_bytes = next.wrapping_sub(start_avma);
        if second.wrapping_sub(start_avma) == size_bytes && used_bytes <= size_bytes {
            return seen(Shape::Vector);
        }
        if next <= second && second.checked_add(1) == Some(size_bytes) && second > 14 {
            return seen(Shape::String);
        }
        if next > 0 && next.checked_mul(8) == Some(size_bytes) {
            return self.table_of_places(map, hit, second);
        }
        // A length alone, or a capacity of a single element, would prove too little.
        let capacity = self.before()?;
        if next > capacity || capacity < 4 || capacity > size_bytes || !size_bytes.is_multiple_of(capacity) {
            return None;
        }
        match size_bytes / capacity {
            1 if capacity >= 8 => seen(Shape::Bytes),
            1 => None,
            element if element.is_power_of_two() || element.is_multiple_of(8) => seen(Shape::Vec),
            _ => None,
        }
    }

    /// Shape of a block of as many words as the one behind its address says.
    fn table_of_places(&self, map: &BlockMap, hit: Hit, second: u64) -> Option<Seen> {
        /// The default load factor 1.0 of `unordered_map` as an `f32`.
        const ONE: u64 = 0x3f80_0000;
        let (third, fourth) = (self.after(3)?, self.after(4)?);
        if fourth & 0xffff_ffff == ONE {
            let first = map.find(second).filter(|first| first.offset_bytes == 0);
            let chain = first.map(|first| Chain { first: first.block, count: third });
            return Some(Seen { shape: Shape::Buckets, chain });
        }
        // Iterator to the first element: current, first, last, and address in the map.
        let place = map.find(self.after(5)?)?;
        let is_in_order = third <= second && second <= fourth;
        (place.block == hit.block && place.offset_bytes.is_multiple_of(8) && is_in_order)
            .then_some(Seen { shape: Shape::DequeMap, chain: None })
    }

    /// Whether the word leads to the control bytes of a hash table: behind the elements, one byte
    /// for each and 16 more.
    fn is_hash_map(&self, hit: Hit, size_bytes: u64, mask: u64) -> bool {
        const GROUP_BYTES: u64 = 16;
        let Some(count) = mask.checked_add(1).filter(|count| count.is_power_of_two() && *count >= 4) else {
            return false;
        };
        let (Some(room), Some(elements)) = (self.after(2), self.after(3)) else { return false };
        let most = if count < 8 { count - 1 } else { count / 8 * 7 };
        hit.offset_bytes.is_multiple_of(GROUP_BYTES)
            && size_bytes - hit.offset_bytes == count + GROUP_BYTES
            && room.checked_add(elements).is_some_and(|all| all <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_map::KnownBlock;

    const AT: u64 = 0x5555_0000_1000;

    fn seen(size_bytes: u64, words: &[u64], at: usize) -> Option<Shape> {
        let block = KnownBlock { address_avma: AT, size_bytes, usable_bytes: size_bytes };
        let map = BlockMap::new(vec![block]);
        let bytes: Vec<[u8; 8]> = words.iter().map(|word| word.to_le_bytes()).collect();
        let hit = map.find(words[at]).unwrap();
        let grade = if hit.offset_bytes == 0 { EdgeGrade::Start } else { EdgeGrade::Interior };
        Around::of(&bytes, at).shape(&map, hit, grade).map(|seen| seen.shape)
    }

    #[test]
    fn containers_are_told_by_the_words_beside_the_place_of_their_elements() {
        assert_eq!(seen(400, &[AT, AT + 120, AT + 400], 0), Some(Shape::Vector));
        assert_eq!(seen(400, &[AT, AT + 120, AT + 408], 0), None);
        assert_eq!(seen(31, &[AT, 20, 30, 0], 0), Some(Shape::String));
        assert_eq!(seen(31, &[AT, 31, 30, 0], 0), None);
        let one = u64::from(1_f32.to_bits());
        assert_eq!(seen(104, &[AT, 13, 0, 9, one, 13], 0), Some(Shape::Buckets));
        assert_eq!(seen(104, &[AT, 13, 0, 9, 7, 13], 0), None);
        let deque = [AT, 8, 0x7000, 0x7000, 0x7200, AT + 24, 0x7008];
        assert_eq!(seen(64, &deque, 0), Some(Shape::DequeMap));
        assert_eq!(seen(64, &[16, AT, 3, 0], 1), Some(Shape::Vec));
        assert_eq!(seen(64, &[64, AT, 3, 0], 1), Some(Shape::Bytes));
        assert_eq!(seen(64, &[16, AT, 17, 0], 1), None);
        assert_eq!(seen(8 * 24 + 8 + 16, &[AT + 8 * 24, 7, 2, 5], 0), Some(Shape::HashMap));
        assert_eq!(seen(8 * 24 + 8 + 16, &[AT + 8 * 24, 7, 3, 5], 0), None);
        assert_eq!(seen(8 * 24 + 8 + 17, &[AT + 8 * 24, 7, 2, 5], 0), None);
    }

    #[test]
    fn at_the_end_of_what_was_read_nothing_is_told() {
        assert_eq!(seen(400, &[AT, AT + 120], 0), None);
        assert_eq!(seen(104, &[AT, 13, 0, 9], 0), None);
    }
}
