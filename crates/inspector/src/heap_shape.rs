//! How many objects and references a V8 heap holds, from a sample of the process's memory. Nothing
//! is asked of it.
//!
//! ```text
//! object:  map | field | field …        map of an object: an address with its lowest two bits 01
//! map:     its own map | 4 bytes, type … a map's map is its own map, and nothing else has such one
//! string:  map | hash, length | characters …
//! array:   map | length | element …     large ones stand at the start of a chunk of 256 KiB
//! WeakMap: map | length | entries | deleted | capacity | key | value …
//! ```
//! Words are 8 bytes: heaps with compressed pointers are not understood.

use std::collections::HashMap;

use super::heap_memory::{CHUNK_BYTES, HeapMemory, WORD_BYTES};

/// What is read from each chunk of the sample at least; of small heaps all is.
const PIECE_BYTES: usize = 16 << 10;
/// Pieces of a sample: 32 MiB.
const PIECES_MAX: usize = 2048;
/// Arrays longer than that have a chunk of their own.
const SMALL_ARRAY_LENGTH_MAX: u64 = 16 << 10;
/// The first object of a chunk begins before.
const HEADER_BYTES: usize = 8 << 10;
/// Keys that tell what kind of table it is.
const SAMPLED_KEYS: usize = 4;
/// Elements that tell how many of a large array are references.
const SAMPLED_ELEMENTS: u64 = 2048;
/// Types of strings are below, …
const STRING_TYPE_END: u16 = 0x80;
/// … and those of which V8 keeps one each have neither bit; which one says it went by version.
const NOT_UNIQUE_BITS: u16 = 0x60;
/// A text is no longer in a snapshot.
const TEXT_LENGTH_MAX: u64 = 1024;
/// Strings without it have characters that take up to three bytes in a text.
const ONE_BYTE_BIT: u16 = 0x08;
const WIDE_CHARACTER_BYTES: u64 = 3;
/// Types of what a program can hold begin here.
const OBJECT_TYPE_MIN: u16 = 0x400;

/// What was counted, for the whole heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeapShape {
    /// Objects, those that are garbage already, too.
    pub objects: u64,
    /// Those of them that are strings of which V8 keeps one each.
    pub unique_strings: u64,
    /// The other strings.
    pub strings: u64,
    /// How long their texts are in a snapshot, at most.
    pub text_bytes: u64,
    /// References in a snapshot: from objects to others, their maps and prototypes among them, from
    /// the list of unique strings, and a second time from the owners of small arrays.
    pub references: u64,
    /// Small integers that are not 0.
    pub numbers: u64,
    /// References from large arrays.
    pub large_array_references: u64,
    /// The length of the longest array with a chunk of its own.
    pub longest_array: u64,
    /// The longest of the others; where not all was read, as long as it may be.
    pub longest_small_array: u64,
    /// Pairs of a key and a value in WeakMaps.
    pub weak_pairs: u64,
}

/// Looks at a process; nothing where its memory may not be read or holds no V8 heap that is
/// understood.
pub fn heap_shape(pid: u32) -> Option<HeapShape> {
    shape_of(HeapMemory::of(pid)?)
}

fn is_number(word: u64) -> bool {
    word & 0xffff_ffff == 0 && word != 0
}

/// How many pairs a table of weak keys holds, by its length and three sizes.
fn weak_pairs(sizes: &[u64]) -> Option<u64> {
    let &[length, entries, deleted, capacity] = sizes else { return None };
    let length = if length & 0xffff_ffff == 0 { length >> 32 } else { length };
    let is_small = [entries, deleted, capacity].iter().all(|size| size & 0xffff_ffff == 0);
    let (entries, capacity) = (entries >> 32, capacity >> 32);
    let is_table =
        is_small && capacity.is_power_of_two() && entries <= capacity && length == 3 + 2 * capacity;
    is_table.then_some(entries)
}

/// The elements of an array behind its map and its length: all of them are references or small
/// integers.
fn small_array(behind_map: &[u64]) -> Option<&[u64]> {
    let (&length, elements) = behind_map.split_first()?;
    let length = either_half(length).filter(|&length| length <= SMALL_ARRAY_LENGTH_MAX)?;
    let is_tagged = |&word: &u64| word & 1 != 0 && word >> 48 == 0 || word & 0xffff_ffff == 0;
    elements.get(..length as usize).filter(|elements| elements.iter().all(is_tagged))
}

/// A length is a tagged number; since V8 14 it is none.
fn either_half(word: u64) -> Option<u64> {
    match (word >> 32, word & 0xffff_ffff) {
        (length, 0) | (0, length) => Some(length),
        _ => None,
    }
}

/// What stands behind the places that have one map.
#[derive(Debug, Default)]
struct Count {
    objects: u64,
    /// If these are strings.
    characters: u64,
    /// If these are arrays: their references.
    elements: u64,
}

fn shape_of(mut memory: HeapMemory) -> Option<HeapShape> {
    let mut shape = HeapShape::default();
    // Chunks that large arrays fill are counted by their lengths.
    let mut filled_until = 0;
    let mut others = Vec::new();
    for chunk in memory.chunks().to_owned() {
        if chunk < filled_until {
            continue;
        }
        let head = memory.words(chunk, HEADER_BYTES);
        // Numbers can look like a length; no array leaves the memory that is there.
        let found = large_array(&mut memory, chunk, &head);
        let is_there = |&(elements, length): &(u64, u64)| {
            let last = length.checked_mul(WORD_BYTES as u64).and_then(|bytes| elements.checked_add(bytes));
            last.is_some_and(|last| memory.is_there(last))
        };
        if let Some((elements, length)) = found.filter(is_there) {
            filled_until = elements + length * WORD_BYTES as u64;
            let (references, numbers) = elements_of(&memory, elements, length);
            shape.numbers += numbers;
            shape.large_array_references += references;
            shape.longest_array = shape.longest_array.max(length);
            let sizes = memory.words(elements, 3 * WORD_BYTES);
            shape.weak_pairs += weak_pairs(&[&[length << 32], &sizes[..]].concat()).unwrap_or(0);
            shape.objects += 1;
        } else if head.iter().any(|&word| word != 0) {
            others.push(chunk);
        }
    }
    let step = others.len().div_ceil(PIECES_MAX).max(1);
    let mut piece_bytes = PIECE_BYTES;
    while piece_bytes < CHUNK_BYTES as usize && piece_bytes * 2 * others.len() <= PIECE_BYTES * PIECES_MAX {
        piece_bytes *= 2;
    }
    // Different parts of the chunks: their ends are filled last.
    let pieces: Vec<Vec<u64>> = others
        .iter()
        .step_by(step)
        .enumerate()
        .map(|(number, chunk)| {
            let part = number as u64 % (CHUNK_BYTES / piece_bytes as u64);
            memory.words(chunk + part * piece_bytes as u64, piece_bytes)
        })
        .collect();
    // By the word that may be a map.
    let mut counts: HashMap<u64, Count> = HashMap::new();
    let mut found = HeapShape::default();
    let is_all_read = step == 1 && piece_bytes == CHUNK_BYTES as usize;
    let mut longest = if is_all_read { 0 } else { SMALL_ARRAY_LENGTH_MAX };
    for (piece, at) in pieces.iter().flat_map(|piece| (0..piece.len()).map(move |at| (piece, at))) {
        let word = piece[at];
        found.references += u64::from(memory.is_reference(word));
        found.numbers += u64::from(is_number(word));
        if word & 3 == 1 {
            let behind_map = &piece[at + 1..];
            let count = counts.entry(word).or_default();
            count.objects += 1;
            count.characters += behind_map.first().map_or(0, |word| (word >> 32).min(TEXT_LENGTH_MAX));
            let pairs = behind_map.get(..4).and_then(weak_pairs).unwrap_or(0);
            if pairs > 0 && !has_names_as_keys(&mut memory, &behind_map[4..]) {
                found.weak_pairs += pairs;
            }
            let Some(length) = behind_map.first().and_then(|&word| either_half(word)) else { continue };
            // Arrays have a map of V8's own. Most words are none, and not looked behind.
            let is_constant = !memory.is_there(word);
            let is_wanted = length > longest || is_constant && length <= SMALL_ARRAY_LENGTH_MAX;
            if !is_wanted || !memory.is_map(word) {
                continue;
            }
            let Some(elements) = small_array(behind_map) else { continue };
            longest = longest.max(elements.len() as u64);
            // Tables begin with numbers, and have no owner that shows their elements as its own.
            if is_constant && elements.first().is_some_and(|first| first & 1 != 0) {
                count.elements += elements.iter().filter(|&&word| memory.is_element(word)).count() as u64;
            }
        }
    }
    // A map of a single object of the sample is hardly worth a look.
    for (map, count) in counts.into_iter().filter(|(_, count)| count.objects > 1) {
        let Some(kind) = memory.type_of(map) else { continue };
        found.objects += count.objects;
        // Maps of V8's own lie where nothing is written, and arrays have such ones.
        if !memory.is_there(map) {
            found.references += count.objects + count.elements;
        }
        if kind >= OBJECT_TYPE_MIN {
            found.references += count.objects;
        }
        if kind < STRING_TYPE_END {
            let width = if kind & ONE_BYTE_BIT == 0 { WIDE_CHARACTER_BYTES } else { 1 };
            found.text_bytes += count.characters * width;
            let is_unique = kind & NOT_UNIQUE_BITS == 0;
            *if is_unique { &mut found.unique_strings } else { &mut found.strings } += count.objects;
        }
    }
    found.references += found.unique_strings;
    let scale = step as u64 * (CHUNK_BYTES / piece_bytes as u64);
    shape.objects += found.objects * scale;
    shape.unique_strings += found.unique_strings * scale;
    shape.strings += found.strings * scale;
    shape.text_bytes += found.text_bytes * scale;
    shape.references += found.references * scale;
    shape.numbers += found.numbers * scale;
    shape.weak_pairs += found.weak_pairs * scale;
    shape.longest_small_array = longest;
    (found.objects > 0).then_some(shape)
}

/// The address of the elements, and their number, if the first object of a chunk is a large
/// array.
fn large_array(memory: &mut HeapMemory, chunk: u64, head: &[u64]) -> Option<(u64, u64)> {
    head.windows(2).enumerate().find_map(|(at, pair)| {
        let length = either_half(pair[1])?;
        let is_large = length > SMALL_ARRAY_LENGTH_MAX / 2 && memory.is_map(pair[0]);
        is_large.then_some((chunk + (at as u64 + 2) * WORD_BYTES as u64, length))
    })
}

/// How many elements of an array are references, and how many are numbers.
fn elements_of(memory: &HeapMemory, elements: u64, length: u64) -> (u64, u64) {
    // Tables have a key every third word: the steps must not be in step with them.
    let place = |number: u64| (number * (length / SAMPLED_ELEMENTS).max(1) + number % 7).min(length - 1);
    let at = (0..SAMPLED_ELEMENTS.min(length)).map(|number| elements + place(number) * WORD_BYTES as u64);
    let sample: Vec<u64> = at.flat_map(|address| memory.words(address, WORD_BYTES)).collect();
    let part = |count: usize| (length * count as u64).div_ceil(sample.len().max(1) as u64);
    let references = sample.iter().filter(|&&word| memory.is_reference(word)).count();
    (part(references), part(sample.iter().filter(|&&word| is_number(word)).count()))
}

/// Whether the pairs of a table are those of what a module exports: it has the form of one with
/// weak keys.
fn has_names_as_keys(memory: &mut HeapMemory, pairs: &[u64]) -> bool {
    let keys = pairs.iter().step_by(2).filter(|&&key| memory.is_reference(key)).take(SAMPLED_KEYS);
    let keys: Vec<u64> = keys.copied().collect();
    let is_name = |&&key: &&u64| {
        let map = memory.words(key & !3, WORD_BYTES).first().copied();
        map.and_then(|map| memory.type_of(map)).is_some_and(|kind| kind < STRING_TYPE_END)
    };
    keys.iter().filter(is_name).count() * 2 > keys.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_v8_has_no_shape() {
        assert_eq!(heap_shape(std::process::id()), None);
        assert_eq!(heap_shape(u32::MAX), None);
    }

    #[test]
    fn a_table_of_weak_keys_is_told_by_its_sizes() {
        let small = |number: u64| number << 32;
        assert_eq!(weak_pairs(&[small(3 + 2 * 64), small(20), small(5), small(64)]), Some(20));
        // Since V8 14 the length is no tagged number.
        assert_eq!(weak_pairs(&[3 + 2 * 64, small(20), 0, small(64)]), Some(20));
        for other in [
            [small(3 + 3 * 64), small(20), 0, small(64)],
            [small(3 + 2 * 60), small(20), 0, small(60)],
            [small(3 + 2 * 64), small(65), 0, small(64)],
            [small(3 + 2 * 64), 21, 0, small(64)],
            [u64::MAX; 4],
            [0; 4],
        ] {
            assert_eq!(weak_pairs(&other), None, "{other:x?}");
        }
        assert_eq!(weak_pairs(&[0]), None);
    }

    #[test]
    fn an_array_is_told_by_its_elements() {
        let small = |number: u64| number << 32;
        let references = [0x7f00_0000_1001; 4];
        let length = |behind_map: &[u64]| small_array(behind_map).map(<[u64]>::len);
        assert_eq!(length(&[&[small(3)], &references[..]].concat()), Some(3));
        assert_eq!(length(&[4, small(7), 0, 0x1001, 0x2001]), Some(4));
        assert_eq!(length(&[small(0)]), Some(0));
        // Too long, cut off, or of other things: characters, numbers with a fraction.
        for other in [
            &[small(5), 1, 1][..],
            &[small(1 << 15)],
            &[small(2), 0x7f00_0000_1001, 0x6f6c_6c65_6800_0002],
            &[],
        ] {
            assert_eq!(length(other), None, "{other:x?}");
        }
    }
}
