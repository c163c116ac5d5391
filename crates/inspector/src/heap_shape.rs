//! Counts of objects and references in a V8 heap, from a sample of the process's memory. Nothing is
//! sent to the process.
//!
//! ```text
//! object:  map | field | field …        map of an object: an address with its lowest two bits 01
//! map:     its own map | 4 bytes, type … a map's map is its own map, and nothing else has such one
//! string:  map | hash, length | characters …
//! array:   map | length | element …     large ones stand at the start of a chunk of 256 KiB
//! WeakMap: map | length | entries | deleted | capacity | key | value …
//! ```
//! Words are 8 bytes: heaps with compressed pointers are not supported.

use std::collections::HashMap;

use super::heap_memory::{CHUNK_BYTES, HeapMemory, WORD_BYTES};

/// Least number of bytes read per sampled chunk; small heaps are read whole.
const PIECE_BYTES: usize = 16 << 10;
/// Largest number of pieces in a sample: 32 MiB.
const PIECES_MAX: usize = 2048;
/// Largest length of an array without a chunk of its own.
const SMALL_ARRAY_LENGTH_MAX: u64 = 16 << 10;
/// Number of bytes at the start of a chunk within which its first object begins.
const HEADER_BYTES: usize = 8 << 10;
/// Number of keys that are examined to classify a table.
const SAMPLED_KEYS: usize = 4;
/// Number of sampled elements of a large array.
const SAMPLED_ELEMENTS: u64 = 2048;
/// End of the range of string types.
const STRING_TYPE_END: u16 = 0x80;
/// Bits of a string type that are clear for unique strings; which bit is used depends on the
/// version.
const NOT_UNIQUE_BITS: u16 = 0x60;
/// Largest length of a text in a snapshot.
const TEXT_LENGTH_MAX: u64 = 1024;
/// Bit of a string type for one-byte characters. Other characters take up to three bytes in a text.
const ONE_BYTE_BIT: u16 = 0x08;
const WIDE_CHARACTER_BYTES: u64 = 3;
/// First type of objects that a program can hold.
const OBJECT_TYPE_MIN: u16 = 0x400;

/// Counts for the whole heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeapShape {
    /// Number of objects, garbage included.
    pub objects: u64,
    /// Number of unique strings, which V8 stores once each.
    pub unique_strings: u64,
    /// Number of other strings.
    pub strings: u64,
    /// Upper bound of the bytes of their texts in a snapshot.
    pub text_bytes: u64,
    /// Number of references in a snapshot. Counted are references from objects (maps and prototypes
    /// included), from the list of unique strings, and from the owners of small arrays to the
    /// elements.
    pub references: u64,
    /// Number of small integers other than 0.
    pub numbers: u64,
    /// Number of references from large arrays.
    pub large_array_references: u64,
    /// Length of the longest array with a chunk of its own.
    pub longest_array: u64,
    /// Length of the longest other array; the largest possible length if the memory was only
    /// sampled.
    pub longest_small_array: u64,
    /// Number of key-value pairs in WeakMaps.
    pub weak_pairs: u64,
}

/// Counts the heap of a process. Returns `None` if its memory may not be read or contains no
/// supported V8 heap.
pub fn heap_shape(pid: u32) -> Option<HeapShape> {
    shape_of(HeapMemory::of(pid)?)
}

fn is_number(word: u64) -> bool {
    word & 0xffff_ffff == 0 && word != 0
}

/// Returns the number of pairs in a table of weak keys, from its length and three sizes.
fn weak_pairs(sizes: &[u64]) -> Option<u64> {
    let &[length, entries, deleted, capacity] = sizes else { return None };
    let length = if length & 0xffff_ffff == 0 { length >> 32 } else { length };
    let is_small = [entries, deleted, capacity].iter().all(|size| size & 0xffff_ffff == 0);
    let (entries, capacity) = (entries >> 32, capacity >> 32);
    let is_table =
        is_small && capacity.is_power_of_two() && entries <= capacity && length == 3 + 2 * capacity;
    is_table.then_some(entries)
}

/// Returns the elements of an array from the words after its map. All elements must be references
/// or small integers.
fn small_array(behind_map: &[u64]) -> Option<&[u64]> {
    let (&length, elements) = behind_map.split_first()?;
    let length = either_half(length).filter(|&length| length <= SMALL_ARRAY_LENGTH_MAX)?;
    let is_tagged = |&word: &u64| word & 1 != 0 && word >> 48 == 0 || word & 0xffff_ffff == 0;
    elements.get(..length as usize).filter(|elements| elements.iter().all(is_tagged))
}

/// Returns the length in a word: a tagged number, or since V8 14 an untagged one.
fn either_half(word: u64) -> Option<u64> {
    match (word >> 32, word & 0xffff_ffff) {
        (length, 0) | (0, length) => Some(length),
        _ => None,
    }
}

/// Counts for the objects with one map.
#[derive(Debug, Default)]
struct Count {
    objects: u64,
    /// Number of characters, if the objects are strings.
    characters: u64,
    /// Number of references, if the objects are arrays.
    elements: u64,
}

fn shape_of(mut memory: HeapMemory) -> Option<HeapShape> {
    let mut shape = HeapShape::default();
    let others = count_large_arrays(&mut memory, &mut shape);
    let sample = Sample::of(&memory, &others);
    let mut found = HeapShape::default();
    let counts = count_words(&mut memory, &sample, &mut found);
    count_objects(&mut memory, counts, &mut found);
    let scale = sample.scale;
    shape.objects += found.objects * scale;
    shape.unique_strings += found.unique_strings * scale;
    shape.strings += found.strings * scale;
    shape.text_bytes += found.text_bytes * scale;
    shape.references += found.references * scale;
    shape.numbers += found.numbers * scale;
    shape.weak_pairs += found.weak_pairs * scale;
    shape.longest_small_array = found.longest_small_array;
    (found.objects > 0).then_some(shape)
}

/// Counts the large arrays by their lengths. Returns the chunks that hold other objects.
fn count_large_arrays(memory: &mut HeapMemory, shape: &mut HeapShape) -> Vec<u64> {
    let mut filled_until = 0;
    let mut others = Vec::new();
    for chunk in memory.chunks().to_owned() {
        if chunk < filled_until {
            continue;
        }
        let head = memory.words(chunk, HEADER_BYTES);
        // Other numbers can look like a length; the end of a real array is in known memory.
        let found = large_array(memory, chunk, &head);
        let is_there = |&(elements, length): &(u64, u64)| {
            let last = length.checked_mul(WORD_BYTES as u64).and_then(|bytes| elements.checked_add(bytes));
            last.is_some_and(|last| memory.is_there(last))
        };
        if let Some((elements, length)) = found.filter(is_there) {
            filled_until = elements + length * WORD_BYTES as u64;
            let (references, numbers) = elements_of(memory, elements, length);
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
    others
}

/// Words of some chunks, or of all.
struct Sample {
    pieces: Vec<Vec<u64>>,
    /// Number of pieces that each of them stands for.
    scale: u64,
}

impl Sample {
    fn of(memory: &HeapMemory, chunks: &[u64]) -> Self {
        let step = chunks.len().div_ceil(PIECES_MAX).max(1);
        let mut piece_bytes = PIECE_BYTES;
        while piece_bytes < CHUNK_BYTES as usize && piece_bytes * 2 * chunks.len() <= PIECE_BYTES * PIECES_MAX
        {
            piece_bytes *= 2;
        }
        // The pieces come from different parts of the chunks, because the ends of chunks are filled
        // last.
        let pieces = chunks.iter().step_by(step).enumerate().map(|(number, chunk)| {
            let part = number as u64 % (CHUNK_BYTES / piece_bytes as u64);
            memory.words(chunk + part * piece_bytes as u64, piece_bytes)
        });
        Self { pieces: pieces.collect(), scale: step as u64 * (CHUNK_BYTES / piece_bytes as u64) }
    }

    fn is_all(&self) -> bool {
        self.scale == 1
    }
}

/// Counts references, numbers, weak pairs and the longest small array of a sample. Returns a count
/// for each word that may be the address of a map.
fn count_words(memory: &mut HeapMemory, sample: &Sample, found: &mut HeapShape) -> HashMap<u64, Count> {
    let mut counts: HashMap<u64, Count> = HashMap::new();
    let mut longest = if sample.is_all() { 0 } else { SMALL_ARRAY_LENGTH_MAX };
    for (piece, at) in sample.pieces.iter().flat_map(|piece| (0..piece.len()).map(move |at| (piece, at))) {
        let word = piece[at];
        found.references += u64::from(memory.is_reference(word));
        found.numbers += u64::from(is_number(word));
        if word & 3 == 1 {
            let behind_map = &piece[at + 1..];
            let count = counts.entry(word).or_default();
            count.objects += 1;
            count.characters += behind_map.first().map_or(0, |word| (word >> 32).min(TEXT_LENGTH_MAX));
            let pairs = behind_map.get(..4).and_then(weak_pairs).unwrap_or(0);
            if pairs > 0 && !has_names_as_keys(memory, &behind_map[4..]) {
                found.weak_pairs += pairs;
            }
            let Some(length) = behind_map.first().and_then(|&word| either_half(word)) else { continue };
            // The map of an array is a constant of V8. Most words are not maps and are not
            // followed.
            let is_constant = !memory.is_there(word);
            let is_wanted = length > longest || is_constant && length <= SMALL_ARRAY_LENGTH_MAX;
            if !is_wanted || !memory.is_map(word) {
                continue;
            }
            let Some(elements) = small_array(behind_map) else { continue };
            longest = longest.max(elements.len() as u64);
            // Tables begin with numbers; no owner shows their elements as its own.
            if is_constant && elements.first().is_some_and(|first| first & 1 != 0) {
                count.elements += elements.iter().filter(|&&word| memory.is_element(word)).count() as u64;
            }
        }
    }
    found.longest_small_array = longest;
    counts
}

/// Counts objects, strings and the references that a snapshot adds, by the types of their maps.
fn count_objects(memory: &mut HeapMemory, counts: HashMap<u64, Count>, found: &mut HeapShape) {
    // A map with a single object in the sample is not worth a lookup.
    for (map, count) in counts.into_iter().filter(|(_, count)| count.objects > 1) {
        let Some(kind) = memory.type_of(map) else { continue };
        found.objects += count.objects;
        // V8's constant maps lie in read-only memory; arrays have such maps.
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
}

/// Returns the address and number of elements, if the first object of a chunk is a large array.
fn large_array(memory: &mut HeapMemory, chunk: u64, head: &[u64]) -> Option<(u64, u64)> {
    head.windows(2).enumerate().find_map(|(at, pair)| {
        let length = either_half(pair[1])?;
        let is_large = length > SMALL_ARRAY_LENGTH_MAX / 2 && memory.is_map(pair[0]);
        is_large.then_some((chunk + (at as u64 + 2) * WORD_BYTES as u64, length))
    })
}

/// Returns the estimated numbers of references and of small integers in an array.
fn elements_of(memory: &HeapMemory, elements: u64, length: u64) -> (u64, u64) {
    // Tables have a key every third word, so the steps must vary.
    let place = |number: u64| (number * (length / SAMPLED_ELEMENTS).max(1) + number % 7).min(length - 1);
    let at = (0..SAMPLED_ELEMENTS.min(length)).map(|number| elements + place(number) * WORD_BYTES as u64);
    let sample: Vec<u64> = at.flat_map(|address| memory.words(address, WORD_BYTES)).collect();
    let part = |count: usize| (length * count as u64).div_ceil(sample.len().max(1) as u64);
    let references = sample.iter().filter(|&&word| memory.is_reference(word)).count();
    (part(references), part(sample.iter().filter(|&&word| is_number(word)).count()))
}

/// Whether a table holds a module's exports. Such a table looks like one with weak keys, but its
/// keys are strings.
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
        // Since V8 14 the length is not a tagged number.
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
        // Arrays that are too long, truncated, or of other words: characters, floating-point
        // numbers.
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
