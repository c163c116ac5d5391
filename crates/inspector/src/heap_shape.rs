//! How many objects and references a V8 heap holds, from a sample of the process's memory. Nothing
//! is asked of it.
//!
//! ```text
//! object:  map | field | field …        map of an object: an address with its lowest two bits 01
//! map:     its own map | …              a map's map is its own map, and nothing else has such one
//! string:  map | hash, length | characters …
//! array:   map | length | element …     large ones stand at the start of a chunk of 256 KiB
//! WeakMap: map | length | entries | deleted | capacity | key | value …
//! ```
//! Words are 8 bytes: heaps with compressed pointers are not understood.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

const WORD_BYTES: usize = 8;
/// What V8 aligns its memory to.
const CHUNK_BYTES: u64 = 256 << 10;
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

/// What was counted, for the whole heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeapShape {
    /// Objects, those that are garbage already, too.
    pub objects: u64,
    /// Those of them that may be strings of which V8 keeps one each.
    pub strings: u64,
    /// References from objects to others, their maps among them.
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
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let chunks: Vec<u64> = maps.lines().filter_map(anonymous_range).flat_map(chunks_of).collect();
    let memory =
        Memory { file: File::open(format!("/proc/{pid}/mem")).ok()?, chunks, is_map: HashMap::new() };
    memory.shape()
}

/// A private mapping that is no file's.
fn anonymous_range(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let is_heap = fields.next()?.starts_with("rw-p") && fields.nth(2)? == "0" && fields.next().is_none();
    let address = |text| u64::from_str_radix(text, 16).ok();
    is_heap.then_some((address(start)?, address(end)?))
}

fn chunks_of((start, end): (u64, u64)) -> impl Iterator<Item = u64> {
    let first = start.checked_next_multiple_of(CHUNK_BYTES).unwrap_or(u64::MAX);
    (first..end).step_by(CHUNK_BYTES as usize)
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

/// The length that stands behind the map of an array, whose elements follow: all of them are
/// references or small integers.
fn small_array(behind_map: &[u64]) -> Option<u64> {
    let (&length, elements) = behind_map.split_first()?;
    let length = either_half(length).filter(|&length| length <= SMALL_ARRAY_LENGTH_MAX)?;
    let is_tagged = |&word: &u64| word & 1 != 0 && word >> 48 == 0 || word & 0xffff_ffff == 0;
    elements.get(..length as usize)?.iter().all(is_tagged).then_some(length)
}

/// A length is a tagged number; since V8 14 it is none.
fn either_half(word: u64) -> Option<u64> {
    match (word >> 32, word & 0xffff_ffff) {
        (length, 0) | (0, length) => Some(length),
        _ => None,
    }
}

struct Memory {
    file: File,
    /// What may be written, by address: constants of V8 lie elsewhere, and are no objects of their
    /// own.
    chunks: Vec<u64>,
    is_map: HashMap<u64, bool>,
}

impl Memory {
    fn shape(mut self) -> Option<HeapShape> {
        let mut shape = HeapShape::default();
        // Chunks that large arrays fill are counted by their lengths.
        let mut filled_until = 0;
        let mut others = Vec::new();
        for chunk in self.chunks.clone() {
            if chunk < filled_until {
                continue;
            }
            let head = self.words(chunk, HEADER_BYTES);
            // Numbers can look like a length; no array leaves the memory that is there.
            let found = self.large_array(chunk, &head);
            let is_there = |&(elements, length): &(u64, u64)| {
                let last =
                    length.checked_mul(WORD_BYTES as u64).and_then(|bytes| elements.checked_add(bytes));
                last.is_some_and(|last| self.is_there(last))
            };
            if let Some((elements, length)) = found.filter(is_there) {
                filled_until = elements + length * WORD_BYTES as u64;
                let (references, numbers) = self.elements(elements, length);
                shape.numbers += numbers;
                shape.large_array_references += references;
                shape.longest_array = shape.longest_array.max(length);
                let sizes = self.words(elements, 3 * WORD_BYTES);
                shape.weak_pairs += weak_pairs(&[&[length << 32], &sizes[..]].concat()).unwrap_or(0);
                shape.objects += 1;
            } else if head.iter().any(|&word| word != 0) {
                others.push(chunk);
            }
        }
        let step = others.len().div_ceil(PIECES_MAX).max(1);
        let mut piece_bytes = PIECE_BYTES;
        while piece_bytes < CHUNK_BYTES as usize && piece_bytes * 2 * others.len() <= PIECE_BYTES * PIECES_MAX
        {
            piece_bytes *= 2;
        }
        // Different parts of the chunks: their ends are filled last.
        let pieces: Vec<Vec<u64>> = others
            .iter()
            .step_by(step)
            .enumerate()
            .map(|(number, chunk)| {
                let part = number as u64 % (CHUNK_BYTES / piece_bytes as u64);
                self.words(chunk + part * piece_bytes as u64, piece_bytes)
            })
            .collect();
        // By the word that may be a map: how often, and before what may be a string.
        let mut counts: HashMap<u64, (u64, u64)> = HashMap::new();
        let (mut objects, mut strings, mut references, mut numbers, mut pairs) = (0, 0, 0, 0, 0);
        let is_all_read = step == 1 && piece_bytes == CHUNK_BYTES as usize;
        let mut longest = if is_all_read { 0 } else { SMALL_ARRAY_LENGTH_MAX };
        for (piece, at) in pieces.iter().flat_map(|piece| (0..piece.len()).map(move |at| (piece, at))) {
            let word = piece[at];
            references += u64::from(self.is_reference(word));
            numbers += u64::from(is_number(word));
            if word & 3 == 1 {
                let count = counts.entry(word).or_default();
                count.0 += 1;
                count.1 += u64::from(piece.get(at + 1..at + 3).is_some_and(|rest| self.is_string(rest)));
                let found = piece.get(at + 1..at + 5).and_then(weak_pairs).unwrap_or(0);
                if found > 0 && !self.has_names_as_keys(&piece[at + 5..]) {
                    pairs += found;
                }
                let is_longer = piece.get(at + 1).and_then(|&word| either_half(word)) > Some(longest);
                if is_longer
                    && let Some(length) = small_array(&piece[at + 1..])
                    && self.is_map(word)
                {
                    longest = length;
                }
            }
        }
        // A map of a single object of the sample is hardly worth a look.
        for (word, count) in counts.into_iter().filter(|&(_, count)| count.0 > 1) {
            if self.is_map(word) {
                objects += count.0;
                strings += count.1;
            }
        }
        let scale = step as u64 * (CHUNK_BYTES / piece_bytes as u64);
        shape.objects += objects * scale;
        shape.strings += strings * scale;
        shape.references += references * scale;
        shape.numbers += numbers * scale;
        shape.weak_pairs += pairs * scale;
        shape.longest_small_array = longest;
        (objects > 0).then_some(shape)
    }

    /// The address of the elements, and their number, if the first object of a chunk is a large
    /// array.
    fn large_array(&mut self, chunk: u64, head: &[u64]) -> Option<(u64, u64)> {
        head.windows(2).enumerate().find_map(|(at, pair)| {
            let length = either_half(pair[1])?;
            let is_large = length > SMALL_ARRAY_LENGTH_MAX / 2 && self.is_map(pair[0]);
            is_large.then_some((chunk + (at as u64 + 2) * WORD_BYTES as u64, length))
        })
    }

    /// How many elements of an array are references, and how many are numbers.
    fn elements(&self, elements: u64, length: u64) -> (u64, u64) {
        // Tables have a key every third word: the steps must not be in step with them.
        let place = |number: u64| (number * (length / SAMPLED_ELEMENTS).max(1) + number % 7).min(length - 1);
        let at = (0..SAMPLED_ELEMENTS.min(length)).map(|number| elements + place(number) * WORD_BYTES as u64);
        let sample: Vec<u64> = at.flat_map(|address| self.words(address, WORD_BYTES)).collect();
        let part = |count: usize| (length * count as u64).div_ceil(sample.len().max(1) as u64);
        let references = sample.iter().filter(|&&word| self.is_reference(word)).count();
        (part(references), part(sample.iter().filter(|&&word| is_number(word)).count()))
    }

    fn is_reference(&self, word: u64) -> bool {
        word & 1 != 0 && self.is_there(word)
    }

    /// Hash and length, then characters; strings that are made of others have a reference there.
    /// The hash of a unique string is known, and even.
    fn is_string(&self, behind_map: &[u64]) -> bool {
        let (hash, length) = (behind_map[0] & 0xffff_ffff, behind_map[0] >> 32);
        hash != 0 && hash & 1 == 0 && (1..1 << 29).contains(&length) && !self.is_reference(behind_map[1])
    }

    /// Whether the pairs of a table are those of what a module exports: it has the form of one with
    /// weak keys.
    fn has_names_as_keys(&self, pairs: &[u64]) -> bool {
        let keys = pairs.iter().step_by(2).filter(|&&key| self.is_reference(key)).take(SAMPLED_KEYS);
        let is_name = keys.map(|&key| {
            let object = self.words(key & !3, 3 * WORD_BYTES);
            object.get(1..).is_some_and(|behind_map| self.is_string(behind_map))
        });
        let (mut names, mut others) = (0, 0);
        is_name.for_each(|is_name| *if is_name { &mut names } else { &mut others } += 1);
        names > others
    }

    fn is_there(&self, address: u64) -> bool {
        self.chunks.binary_search(&(address & !(CHUNK_BYTES - 1))).is_ok()
    }

    fn is_map(&mut self, word: u64) -> bool {
        if word & 3 != 1 {
            return false;
        }
        if let Some(&known) = self.is_map.get(&word) {
            return known;
        }
        let map_of =
            |address: u64| self.words(address & !3, WORD_BYTES).first().copied().filter(|map| map & 3 == 1);
        let is_map = map_of(word).is_some_and(|map| map_of(map) == Some(map));
        self.is_map.insert(word, is_map);
        is_map
    }

    fn words(&self, address: u64, bytes: usize) -> Vec<u64> {
        let mut buffer = vec![0; bytes];
        match self.file.read_exact_at(&mut buffer, address) {
            Ok(()) => buffer.as_chunks().0.iter().map(|&word| u64::from_ne_bytes(word)).collect(),
            // Unmapped meanwhile.
            Err(_) => Vec::new(),
        }
    }
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
        assert_eq!(small_array(&[&[small(3)], &references[..]].concat()), Some(3));
        assert_eq!(small_array(&[4, small(7), 0, 0x1001, 0x2001]), Some(4));
        assert_eq!(small_array(&[small(0)]), Some(0));
        // Too long, cut off, or of other things: characters, numbers with a fraction.
        for other in [
            &[small(5), 1, 1][..],
            &[small(1 << 15)],
            &[small(2), 0x7f00_0000_1001, 0x6f6c_6c65_6800_0002],
            &[],
        ] {
            assert_eq!(small_array(other), None, "{other:x?}");
        }
    }

    #[test]
    fn only_private_memory_that_can_be_written_is_looked_at() {
        assert_eq!(anonymous_range("40000-90000 rw-p 00000000 00:00 0 "), Some((0x40000, 0x90000)));
        assert_eq!(chunks_of((0x1_0000, 0x9_0000)).collect::<Vec<_>>(), [0x4_0000, 0x8_0000]);
        assert_eq!(chunks_of((u64::MAX - 9, u64::MAX)).count(), 0);
        for line in
            ["", "40000-90000 r--p 0 00:00 0", "40000-90000 rw-p 0 00:00 0 [stack]", "4-9 rw-p 0 8:1 7 /a"]
        {
            assert_eq!(anonymous_range(line), None, "{line}");
        }
    }
}
