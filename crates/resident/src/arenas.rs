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
    let heaps = headers.filter(|(mapping, words)| is_header(mapping, words));
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

fn is_header(mapping: &Mapping, words: &[Option<u64>; HEADER_WORDS]) -> bool {
    let &[Some(arena), Some(before), Some(size), Some(usable)] = words else { return false };
    arena != 0
        && before.is_multiple_of(ARENA_HEAP_BYTES)
        && size <= usable
        && usable <= mapping.bytes()
        && size.is_multiple_of(heapr_proc::page_bytes())
        && size > 0
}
