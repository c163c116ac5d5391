//! Memory of a process that contains the V8 heap: its chunks, and the meaning of a word in it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

pub(crate) const WORD_BYTES: usize = 8;
/// Alignment of V8's memory, in bytes.
pub(crate) const CHUNK_BYTES: u64 = 256 << 10;
const ADDRESS_BITS: u32 = 48;
/// Largest number of cached constants. V8 has few constants that arrays refer to; the limit bounds
/// the lookups of other words.
const CONSTANTS_MAX: usize = 4096;

/// Parses a line of `/proc/PID/maps`. Returns the range of a private, writable mapping without a
/// file.
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

#[derive(Debug)]
pub(crate) struct HeapMemory {
    file: File,
    /// Addresses of writable chunks. V8's constants lie elsewhere and do not count as objects.
    chunks: Vec<u64>,
    /// Cached types of maps by address; `None` for words that are not maps.
    types: HashMap<u64, Option<u16>>,
    /// Cached answers by address: whether a constant is the hole, which stands for a missing
    /// element.
    holes: HashMap<u64, bool>,
}

impl HeapMemory {
    /// Opens the memory of a process. Returns `None` if it may not be read.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let chunks = maps.lines().filter_map(anonymous_range).flat_map(chunks_of).collect();
        let file = File::open(format!("/proc/{pid}/mem")).ok()?;
        Some(Self { file, chunks, types: HashMap::new(), holes: HashMap::new() })
    }

    /// Addresses of writable chunks, ascending.
    pub(crate) fn chunks(&self) -> &[u64] {
        &self.chunks
    }

    pub(crate) fn is_reference(&self, word: u64) -> bool {
        word & 1 != 0 && self.is_there(word)
    }

    /// Whether a word of an array is an element that a snapshot shows.
    pub(crate) fn is_element(&mut self, word: u64) -> bool {
        if word & 1 == 0 || self.is_there(word) {
            return word & 1 != 0;
        }
        if let Some(&is_hole) = self.holes.get(&word) {
            return !is_hole;
        }
        if self.holes.len() >= CONSTANTS_MAX {
            return true;
        }
        // A constant of V8 has a text, "hole" for the hole. In newer versions the hole has a type
        // of its own and no text.
        let text_of = |address: u64| self.words(address & !3, 3 * WORD_BYTES).get(2).copied();
        let text = text_of(word).filter(|text| text & 1 != 0).and_then(text_of);
        let is_hole = text.is_none_or(|text| (text as u32).to_le_bytes() == *b"hole");
        self.holes.insert(word, is_hole);
        !is_hole
    }

    pub(crate) fn is_there(&self, address: u64) -> bool {
        self.chunks.binary_search(&(address & !(CHUNK_BYTES - 1))).is_ok()
    }

    pub(crate) fn is_map(&mut self, word: u64) -> bool {
        self.type_of(word).is_some()
    }

    /// Returns the type of objects with this map, or `None` if the word is not a map.
    pub(crate) fn type_of(&mut self, word: u64) -> Option<u16> {
        if word & 3 != 1 || word >> ADDRESS_BITS != 0 {
            return None;
        }
        if let Some(&known) = self.types.get(&word) {
            return known;
        }
        let head_of = |address: u64| match self.words(address & !3, 2 * WORD_BYTES)[..] {
            [map, sizes_and_type] if map & 3 == 1 => Some((map, (sizes_and_type >> 32) as u16)),
            _ => None,
        };
        let is_its_own = |map: u64| head_of(map).is_some_and(|(above, _)| above == map);
        let found = head_of(word).filter(|&(map, _)| is_its_own(map)).map(|(_, kind)| kind);
        self.types.insert(word, found);
        found
    }

    pub(crate) fn words(&self, address: u64, bytes: usize) -> Vec<u64> {
        let mut buffer = vec![0; bytes];
        match self.file.read_exact_at(&mut buffer, address) {
            Ok(()) => buffer.as_chunks().0.iter().map(|&word| u64::from_ne_bytes(word)).collect(),
            // The memory was unmapped in the meantime.
            Err(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
