//! Finds the chunks to which a pointer exists.
//!
//! A program holds the address of each live block, and malloc's lists hold that of each free chunk.
//! Since glibc 2.32, singly linked lists mix the link with its own address. Chance values that look
//! like a chunk have no such pointer.

use super::heap_memory::HeapMemory;
use super::layout::{HEADER_BYTES, word};
use heapr_proc::Mapping;
use heapr_proc::page_bytes;

/// Largest amount of memory that is searched: some seconds' worth. The search runs only for heaps
/// with holes.
const MOST_BYTES: u64 = 4 << 30;
const WINDOW_BYTES: u64 = 256 << 10;
/// Shift of the address that is mixed into links: `address >> 12`.
const LINK_SHIFT: u32 = 12;

/// For each of `chunks`, in order of address, whether a word of the target's memory leads to it.
pub(super) fn referenced(memory: &impl HeapMemory, mappings: &[Mapping], chunks: &[u64]) -> Vec<bool> {
    let mut is_found = vec![false; chunks.len()];
    let (Some(&first_avma), Some(&last_avma)) = (chunks.first(), chunks.last()) else { return is_found };
    let span = last_avma - first_avma + HEADER_BYTES;
    let mut bytes = vec![0; WINDOW_BYTES as usize];
    let mut looked_at = 0;
    let is_private = |mapping: &&Mapping| mapping.is_readable && mapping.is_writable && !mapping.is_shared;
    for mapping in mappings.iter().filter(is_private) {
        let mut start_avma = mapping.start_avma;
        while start_avma < mapping.end_avma && looked_at < MOST_BYTES {
            let wanted = (mapping.end_avma - start_avma).min(WINDOW_BYTES) as usize;
            // Untouched memory holds nothing, and reading it would allocate pages.
            let page_count = wanted.div_ceil(page_bytes() as usize);
            let touched = memory.touched_pages(start_avma, page_count);
            if touched.is_some_and(|pages| !pages.contains(&true)) {
                start_avma += wanted as u64;
                continue;
            }
            let length = memory.read(start_avma, &mut bytes[..wanted]);
            looked_at += length as u64;
            for offset in (0..length & !7).step_by(8) {
                let value = word(&bytes, offset);
                let mixed = value ^ (start_avma + offset as u64) >> LINK_SHIFT;
                for value in [value, mixed] {
                    if value.wrapping_sub(first_avma) <= span {
                        note(chunks, value, &mut is_found);
                    }
                }
            }
            start_avma += wanted as u64;
        }
    }
    is_found
}

/// Marks the chunk if `value` is its address or that of its block.
fn note(chunks: &[u64], value: u64, is_found: &mut [bool]) {
    for chunk_avma in [value, value.wrapping_sub(HEADER_BYTES)] {
        if let Ok(index) = chunks.binary_search(&chunk_avma) {
            is_found[index] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::error::Error;
    use super::*;

    const START: u64 = 0x7000_0000_0000;

    struct Memory(Vec<u64>);

    impl HeapMemory for Memory {
        fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
            let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
            let rest = &bytes[(address_avma - START) as usize..];
            let length = rest.len().min(into.len());
            into[..length].copy_from_slice(&rest[..length]);
            length
        }

        fn mappings(&self) -> Result<Vec<Mapping>, Error> {
            Ok(vec![Mapping {
                start_avma: START,
                end_avma: START + self.0.len() as u64 * 8,
                is_readable: true,
                is_writable: true,
                is_executable: false,
                is_shared: false,
                file_off: 0,
                inode: 0,
                name: String::new(),
            }])
        }

        fn open(&self, _path: &str) -> io::Result<std::fs::File> {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    #[test]
    fn pointers_to_blocks_to_chunks_and_mixed_links_count_and_nothing_else() {
        let chunks = [0x5000, 0x5040, 0x5080, 0x50c0, 0x5100];
        let mixed_place = START + 3 * 8;
        let memory = Memory(vec![0x5010, 7, 0x5080, (mixed_place >> 12) ^ 0x50d0, 0x5048, 0x4fff, u64::MAX]);
        let found = referenced(&memory, &memory.mappings().unwrap(), &chunks);
        assert_eq!(found, [true, false, true, true, false]);
        assert_eq!(referenced(&memory, &memory.mappings().unwrap(), &[]), Vec::<bool>::new());
    }
}
