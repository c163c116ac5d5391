//! Page maps: tables in two levels from a page's number to what its allocator knows of it.
//!
//! ```text
//! root, in a module's zeroed data      leaf                      description
//! | 0 | ... | leaf | ... |  ---------> | 0 | ... | entry | ..  ---> first page, pages, ...
//!   page number >> LEAF_BITS             page number, low bits
//! ```
//! A root has no name in a program without symbols. It is found by a page that the allocator has:
//! where a root may begin is known but for the little that the module has besides, and a leaf that
//! leads to a description of this very page is one.

use std::ops::Range;

use heapr_glibc_heap::HeapMemory;
use heapr_proc::smaps::MappingPages;

use super::words::{self, END_AVMA};

/// Both allocators use the same.
const LEAF_BITS: u32 = 18;

/// How a page map is laid out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// A page has so many bits.
    pub(super) page_bits: u32,
    /// A root has so many entries, as bits.
    pub(super) root_bits: u32,
    /// Where an entry's description is; 0: it has none.
    pub(super) description_avma: fn(u64) -> u64,
    /// The word of a description that says where its pages begin.
    pub(super) first_page_word: u64,
    /// Whether that is a page's number; else its address.
    pub(super) counts_pages: bool,
}

/// A page map that was found.
#[derive(Debug, Clone)]
pub(super) struct PageMap {
    shape: Shape,
    root_avma: u64,
    /// The data that it stands in.
    pub(super) data_avma: Range<u64>,
}

/// The data of a module: its written part, and what began as zeros behind it.
fn data(mappings: &[MappingPages]) -> impl Iterator<Item = Range<u64>> {
    let pairs = mappings.windows(2).filter(|pair| {
        let (file, zeros) = (&pair[0].mapping, &pair[1].mapping);
        let is_data = file.inode != 0 && file.is_writable && !file.is_shared;
        let is_zeros = zeros.inode == 0 && zeros.name.is_empty() && zeros.is_writable && !zeros.is_shared;
        is_data && is_zeros && file.end_avma == zeros.start_avma
    });
    pairs.map(|pair| pair[0].mapping.start_avma..pair[1].mapping.end_avma)
}

/// Memory that an allocator may have, the most used first.
pub(super) fn candidates(mappings: &[MappingPages]) -> Vec<&MappingPages> {
    let is_memory = |found: &&MappingPages| {
        let mapping = &found.mapping;
        crate::is_private_anonymous(mapping) || mapping.inode == 0 && mapping.name == "[heap]"
    };
    let mut found: Vec<&MappingPages> =
        mappings.iter().filter(is_memory).filter(|found| found.pages.rss_bytes > 0).collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.pages.rss_bytes));
    found
}

impl PageMap {
    /// Finds one by the pages of the largest mappings.
    pub(super) fn find(shape: Shape, mappings: &[MappingPages], memory: &impl HeapMemory) -> Option<Self> {
        /// The largest of them are an allocator's, or its page map is of no interest.
        const MOST_CANDIDATES: usize = 8;
        /// No module has so much data beside a root.
        const MOST_DATA_BYTES: u64 = 16 << 20;
        let root_bytes = 8_u64 << shape.root_bits;
        let data = data(mappings)
            .filter(|data| (root_bytes..root_bytes + MOST_DATA_BYTES).contains(&(data.end - data.start)));
        for data_avma in data {
            for candidate in candidates(mappings).into_iter().take(MOST_CANDIDATES) {
                let mapping = &candidate.mapping;
                if data_avma.contains(&mapping.start_avma) {
                    continue;
                }
                let pages = mapping.start_avma.next_multiple_of(1 << shape.page_bits)..mapping.end_avma;
                let map = Self { shape, root_avma: 0, data_avma: data_avma.clone() };
                if let Some(root_avma) = map.root_by(&pages, memory) {
                    return Some(Self { root_avma, ..map });
                }
            }
        }
        None
    }

    /// The root, if one of the words at which it may have the leaf of these pages leads to them.
    fn root_by(&self, pages_avma: &Range<u64>, memory: &impl HeapMemory) -> Option<u64> {
        let number = pages_avma.start >> self.shape.page_bits;
        let slot_bytes = (number >> LEAF_BITS) * 8;
        let root_bytes = 8_u64 << self.shape.root_bits;
        let room = (self.data_avma.end - self.data_avma.start).checked_sub(root_bytes)?;
        let first_avma = self.data_avma.start + slot_bytes;
        let words = words::run(memory, first_avma, (room / 8 + 1) as usize);
        let is_leaf = |leaf_avma: u64| self.is_leaf(leaf_avma, pages_avma, memory);
        let place = words.iter().position(|word| is_address(*word) && is_leaf(*word))?;
        Some(self.data_avma.start + place as u64 * 8)
    }

    /// Whether a leaf has a description of any of these pages.
    fn is_leaf(&self, leaf_avma: u64, pages_avma: &Range<u64>, memory: &impl HeapMemory) -> bool {
        /// Some of the first pages may be the allocator's own tables.
        const MOST_PAGES: u64 = 1 << 13;
        const MOST_ENTRIES: usize = 512;
        let first = pages_avma.start >> self.shape.page_bits;
        let in_leaf = first & ((1 << LEAF_BITS) - 1);
        let count = ((pages_avma.end - pages_avma.start) >> self.shape.page_bits)
            .min((1 << LEAF_BITS) - in_leaf)
            .min(MOST_PAGES);
        let entries = words::run(memory, leaf_avma + in_leaf * 8, count as usize);
        let described = entries.iter().zip(first..).filter_map(|(entry, page)| {
            let description_avma = (self.shape.description_avma)(*entry);
            is_address(description_avma).then_some((description_avma, page))
        });
        let described: Vec<(u64, u64)> = described.take(MOST_ENTRIES).collect();
        let places: Vec<u64> =
            described.iter().map(|(avma, _)| avma + self.shape.first_page_word * 8).collect();
        let found = words::records::<1>(memory, &places);
        found.iter().zip(&described).any(|(word, (_, page))| {
            let number =
                |word: u64| if self.shape.counts_pages { word } else { word >> self.shape.page_bits };
            word.is_some_and(|[word]| number(word) == *page)
        })
    }

    /// The places of all descriptions of pages of `range_avma`, in the pages' order; a description
    /// of several pages may stand there twice.
    pub(super) fn descriptions(&self, range_avma: &Range<u64>, memory: &impl HeapMemory) -> Vec<u64> {
        let page_bits = self.shape.page_bits;
        let (mut page, end) = (range_avma.start >> page_bits, range_avma.end.div_ceil(1 << page_bits));
        let mut found = Vec::new();
        while page < end {
            let leaf_end = ((page >> LEAF_BITS) + 1) << LEAF_BITS;
            let count = leaf_end.min(end) - page;
            let slot = words::run(memory, self.root_avma + (page >> LEAF_BITS) * 8, 1);
            if let Some(&leaf_avma) = slot.first().filter(|leaf| is_address(**leaf)) {
                let in_leaf = page & ((1 << LEAF_BITS) - 1);
                for entry in words::run(memory, leaf_avma + in_leaf * 8, count as usize) {
                    let description_avma = (self.shape.description_avma)(entry);
                    if is_address(description_avma) && found.last() != Some(&description_avma) {
                        found.push(description_avma);
                    }
                }
            }
            page += count;
        }
        found
    }
}

fn is_address(word: u64) -> bool {
    (0x1_0000..END_AVMA).contains(&word) && word.is_multiple_of(8)
}
