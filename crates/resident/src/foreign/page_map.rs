//! Page maps: tables in two levels from a page's number to the allocator's description of it.
//!
//! ```text
//! root, in a module's zeroed data      leaf                      description
//! | 0 | ... | leaf | ... |  ---------> | 0 | ... | entry | ..  ---> first page, pages, ...
//!   page number >> LEAF_BITS             page number, low bits
//! ```
//! A root has no name in a program without symbols. It is found by a page that the allocator owns.
//! The root begins near the start of the module's data, as it fills most of them. A candidate is
//! the root if the leaf for this page leads to a description of the page.

use std::collections::HashSet;
use std::ops::Range;

use heapr_glibc_heap::HeapMemory;
use heapr_proc::page_bytes;
use heapr_proc::smaps::MappingPages;

use super::belief::{module_has, names};
use super::words::{self, END_AVMA};
use crate::subject::{Subject, file_name};

/// Bits of a page number that index a leaf; both allocators use the same.
const LEAF_BITS: u32 = 18;

/// Layout of a page map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Bits of an offset in a page.
    pub(super) page_bits: u32,
    /// Bits of a page number that index the root.
    pub(super) root_bits: u32,
    /// Address of an entry's description; 0 without one.
    pub(super) description_avma: fn(u64) -> u64,
    /// Index of the description's word with the first page.
    pub(super) first_page_word: u64,
    /// True if [`first_page_word`](Self::first_page_word) is a page number; false for an address.
    pub(super) counts_pages: bool,
}

/// A page map that was found.
#[derive(Debug, Clone)]
pub(super) struct PageMap {
    shape: Shape,
    root_avma: u64,
    /// Data of the module that holds the root.
    pub(super) data_avma: Range<u64>,
}

/// Data of a module: its written part, and the zeroed part behind it.
struct Data {
    range_avma: Range<u64>,
    /// Whether the module has the allocator's name or defines the process's malloc: then only such
    /// modules are searched.
    is_named: bool,
    module: String,
}

fn data(subject: &Subject, allocator: &str, memory: &impl HeapMemory) -> Vec<Data> {
    // A program with the allocator linked in is the module whose malloc the process uses.
    let own = subject.allocator.as_deref().filter(|own| names(subject, own, allocator, memory));
    let is_named = |name: &str| name.contains(allocator) || own == Some(name);
    let pairs = subject.mappings.windows(2).filter(|pair| {
        let (file, zeros) = (&pair[0].mapping, &pair[1].mapping);
        let is_data = file.inode != 0 && file.is_writable && !file.is_shared;
        let is_zeros = zeros.inode == 0 && zeros.name.is_empty() && zeros.is_writable && !zeros.is_shared;
        is_data && is_zeros && file.end_avma == zeros.start_avma
    });
    let mut found: Vec<Data> = pairs
        .map(|pair| {
            let module = file_name(&pair[0].mapping.name);
            let range_avma = pair[0].mapping.start_avma..pair[1].mapping.end_avma;
            Data { range_avma, is_named: is_named(module), module: module.to_owned() }
        })
        .collect();
    if found.iter().any(|data| data.is_named) {
        found.retain(|data| data.is_named);
    }
    found
}

/// Mappings that an allocator may own, those with most resident pages first.
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
    /// Finds a page map by the pages of the largest mappings.
    pub(super) fn find(
        shape: Shape,
        allocator: &str,
        subject: &Subject,
        memory: &impl HeapMemory,
    ) -> Option<Self> {
        /// Largest size of other data in a module that may have the allocator linked in; most such
        /// modules have no page map.
        const UNNAMED_ROOM_BYTES: u64 = 4 << 20;
        const NAMED_ROOM_BYTES: u64 = 16 << 20;
        let root_bytes = 8_u64 << shape.root_bits;
        for Data { range_avma, is_named, module } in data(subject, allocator, memory) {
            let most_bytes = if is_named { NAMED_ROOM_BYTES } else { UNNAMED_ROOM_BYTES };
            let room = (range_avma.end - range_avma.start).checked_sub(root_bytes);
            if room.is_none_or(|room| room > most_bytes) {
                continue;
            }
            // The module's constants come first, which are read once. The search for a root reads a
            // million words of a program without such an allocator.
            if !module_has(subject, &module, allocator, memory) {
                continue;
            }
            let map = Self { shape, root_avma: 0, data_avma: range_avma };
            if let Some(root_avma) = map.root(is_named, &subject.mappings, memory) {
                return Some(Self { root_avma, ..map });
            }
        }
        None
    }

    /// Address of the root: the word before which the index of some pages leads to a leaf that
    /// describes them.
    fn root(&self, is_named: bool, mappings: &[MappingPages], memory: &impl HeapMemory) -> Option<u64> {
        let (most_candidates, mut leaves_left) = if is_named { (8, 1 << 14) } else { (3, 1 << 11) };
        let root_bytes = 8_u64 << self.shape.root_bits;
        let room = (self.data_avma.end - self.data_avma.start).checked_sub(root_bytes)?;
        let own = |found: &&MappingPages| self.data_avma.contains(&found.mapping.start_avma);
        let parts_avma: Vec<Range<u64>> = candidates(mappings)
            .into_iter()
            .take(most_candidates)
            .filter(|found| !own(found))
            .flat_map(|MappingPages { mapping, .. }| {
                let first_avma = mapping.start_avma.next_multiple_of(1 << self.shape.page_bits);
                self.by_leaf(&(first_avma..mapping.end_avma))
            })
            .collect();
        // Leaves are large and usually begin at a page: these are examined first, of all mappings.
        [true, false].into_iter().find_map(|at_page| {
            let mut found = parts_avma.iter().map(|part_avma| {
                let may_be =
                    |word: u64| word.is_multiple_of(page_bytes()) == at_page && may_be_leaf(word, mappings);
                self.root_of(part_avma, room, may_be, memory, &mut leaves_left)
            });
            found.find_map(|root_avma| root_avma)
        })
    }

    /// The pages from the first on, and those from the begin of the second leaf on: few may be
    /// before it, and the allocator's own.
    fn by_leaf(&self, pages_avma: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
        let leaf_bytes = 1_u64 << (self.shape.page_bits + LEAF_BITS);
        let second_avma = (pages_avma.start + 1).next_multiple_of(leaf_bytes);
        [pages_avma.start, second_avma]
            .map(|start| start..pages_avma.end)
            .into_iter()
            .filter(|part| !part.is_empty())
    }

    /// Address of the root, by some pages that a leaf describes. `may_be` chooses words that may be
    /// leaves; `leaves_left` is the number of those that may be examined.
    fn root_of(
        &self,
        pages_avma: &Range<u64>,
        room: u64,
        may_be: impl Fn(u64) -> bool,
        memory: &impl HeapMemory,
        leaves_left: &mut u32,
    ) -> Option<u64> {
        let slot_bytes = (pages_avma.start >> self.shape.page_bits >> LEAF_BITS) * 8;
        let words = words::run(memory, self.data_avma.start + slot_bytes, (room / 8 + 1) as usize);
        let mut seen = HashSet::new();
        for (place, &word) in words.iter().enumerate() {
            if !may_be(word) || !seen.insert(word) {
                continue;
            }
            *leaves_left = leaves_left.checked_sub(1)?;
            if self.is_leaf(word, pages_avma, memory) {
                return Some(self.data_avma.start + place as u64 * 8);
            }
        }
        None
    }

    /// Whether a leaf has a description of any of these pages.
    fn is_leaf(&self, leaf_avma: u64, pages_avma: &Range<u64>, memory: &impl HeapMemory) -> bool {
        /// Number of pages examined: some of the first may be the allocator's own tables.
        const MOST_PAGES: u64 = 1 << 12;
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

    /// Addresses of the descriptions of all pages of `range_avma`, in order. A description of
    /// several pages may be listed twice.
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

/// Whether a word may be the address of a leaf, which lies wholly in anonymous memory.
fn may_be_leaf(word: u64, mappings: &[MappingPages]) -> bool {
    const LEAF_BYTES: u64 = 8 << LEAF_BITS;
    if !is_address(word) {
        return false;
    }
    let place = mappings.partition_point(|found| found.mapping.end_avma <= word);
    mappings.get(place).is_some_and(|MappingPages { mapping, .. }| {
        mapping.inode == 0
            && mapping.is_writable
            && mapping.start_avma <= word
            && word + LEAF_BYTES <= mapping.end_avma
    })
}

fn is_address(word: u64) -> bool {
    (0x1_0000..END_AVMA).contains(&word) && word.is_multiple_of(8)
}
