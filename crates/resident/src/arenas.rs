//! Heaps of glibc's arenas, recognised by their headers alone.

use heapr_glibc_heap::HeapMemory;
use heapr_known::glibc::ARENA_HEAP_BYTES;
use heapr_proc::Mapping;
use heapr_proc::smaps::MappingPages;

use crate::claims::Claims;
use crate::class::{Class, ToldBy};
use crate::code_files::whole;

/// Name of the part of a heap in arenas besides the main one.
pub(crate) const OTHER_ARENAS: &str = "other arenas";

/// Number of words of a heap's header: arena, previous heap, size, usable size.
const HEADER_WORDS: usize = 4;

/// Bytes before an arena in its first heap, at most: the header of the heap.
const ARENA_OFFSET_MAX: u64 = 256;

/// Claims the mappings that begin with the header of a heap of an arena. Of each candidate four
/// words are read, in place of the whole heap.
pub(crate) fn claim(mappings: &[MappingPages], memory: &impl HeapMemory, claims: &mut Claims) {
    let mappings = mappings.iter().filter(|found| found.pages.own_bytes() > 0);
    let candidates: Vec<&Mapping> =
        mappings.map(|found| &found.mapping).filter(|mapping| is_candidate(mapping)).collect();
    let header = |mapping: &&Mapping| [0, 8, 16, 24].map(|offset| mapping.start_avma + offset);
    let places: Vec<u64> = candidates.iter().flat_map(header).collect();
    let mut words = vec![None; places.len()];
    memory.read_words(&places, &mut words);
    let headers = candidates.iter().zip(words.as_chunks::<HEADER_WORDS>().0);
    let heaps = headers.filter(|(_, words)| is_header(words));
    let claim = |mapping: &Mapping| whole(mapping, Class::GlibcHeap, OTHER_ARENAS, ToldBy::Contents);
    claims.add_many(heaps.map(|(mapping, _)| claim(mapping)).collect::<Vec<_>>());
}

fn is_candidate(mapping: &Mapping) -> bool {
    mapping.inode == 0
        && !mapping.is_shared
        && mapping.name.is_empty()
        && mapping.start_avma.is_multiple_of(ARENA_HEAP_BYTES)
        && mapping.bytes() <= ARENA_HEAP_BYTES
}

/// True for the header of a heap. The largest heap bounds the sizes. The mapping does not, as the
/// heap may have grown since its mappings were read.
fn is_header(words: &[Option<u64>; HEADER_WORDS]) -> bool {
    let &[Some(arena), Some(before), Some(size), Some(usable)] = words else { return false };
    // An arena follows the header of its first heap.
    (1..ARENA_OFFSET_MAX).contains(&(arena % ARENA_HEAP_BYTES))
        && before.is_multiple_of(ARENA_HEAP_BYTES)
        && size <= usable
        && usable <= ARENA_HEAP_BYTES
        && size.is_multiple_of(heapr_proc::page_bytes())
        && size > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_AVMA: u64 = 0x7000_0400_0000;

    #[test]
    fn a_heap_that_grew_after_its_mapping_was_read_is_one() {
        let first = [START_AVMA + 0x20, 0, 0x21000, 0x22000].map(Some);
        let later = [START_AVMA + 0x30, START_AVMA, 0x1000, ARENA_HEAP_BYTES].map(Some);
        assert!(is_header(&first) && is_header(&later));
    }

    #[test]
    fn other_words_are_no_header() {
        let header = [START_AVMA + 0x20, 0, 0x21000, 0x22000];
        // Words with other values: the arena, the heap before, the sizes.
        for (place, word) in
            [(0, 0), (0, START_AVMA), (0, START_AVMA + 0x1000), (1, 8), (2, 0), (2, 0x23000), (2, 0x21008)]
        {
            let mut words = header.map(Some);
            words[place] = Some(word);
            assert!(!is_header(&words), "{place} {word:#x}");
        }
        assert!(!is_header(&[Some(START_AVMA + 0x20), Some(0), Some(0x1000), Some(ARENA_HEAP_BYTES + 1)]));
        assert!(!is_header(&[Some(START_AVMA + 0x20), Some(0), None, Some(0x1000)]));
    }
}
