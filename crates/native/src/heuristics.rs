//! Pointers to the inside of a block that programs hold in the ordinary course; the block's first
//! words prove them.
//!
//! ```text
//!  length prefix     | length |<- text ...          a word: what is left of the block
//!  array of new      | count  |<- elements ...      a word: it divides what is left
//!  counted string    | length | capacity | references |<- text ...
//!  second base       | vptr | ... |<- vptr of the second base: it says how far it is to the top
//!  dynamic string    | length | capacity | kind |<- text ...       redis's
//!  header behind     | what it is of ... |<- begin of the block | ...   SQLite's pages
//! ```
//! The first four are those of Valgrind's memcheck, with the length of the third checked. Sizes of
//! blocks from before an attach are rounded up: what is left may be up to 23 bytes less there.

use std::collections::HashMap;

use heapr_trace::EdgeGrade;

use crate::areas::Regions;
use crate::block_map::{BlockMap, Hit};
use crate::memory::Memory;

/// A position inside of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inside {
    block: u32,
    offset_bytes: u64,
}

impl Inside {
    pub(crate) fn of(hit: Hit) -> Self {
        Self { block: hit.block, offset_bytes: hit.offset_bytes }
    }
}

/// Most bytes by which an allocator rounds a size up.
const ROUNDED_BYTES: u64 = 23;

/// Reads blocks to judge references to their inside.
pub(crate) struct Inspector<'a, M> {
    memory: &'a M,
    map: &'a BlockMap,
    regions: &'a Regions,
    /// First word of each block.
    heads: &'a [u64],
    /// Offset to the top of the object by address of its table of virtual functions; `None` if the
    /// address holds no such table.
    tables: HashMap<u64, Option<i64>>,
}

impl<'a, M: Memory> Inspector<'a, M> {
    pub(crate) fn new(memory: &'a M, map: &'a BlockMap, regions: &'a Regions, heads: &'a [u64]) -> Self {
        Self { memory, map, regions, heads, tables: HashMap::new() }
    }

    /// Returns the grade that the block's contents give to a reference to a position inside; `None`
    /// leaves it doubtful.
    pub(crate) fn explain(&mut self, inside: Inside) -> Option<EdgeGrade> {
        let Inside { block, offset_bytes } = inside;
        let size_bytes = self.map.size_bytes(block as usize);
        let head = match size_bytes {
            // Blocks below 8 bytes have no entry in `heads`: the scan reads whole words only.
            1..8 => self.word(block, 0)? & ((1 << (size_bytes * 8)) - 1),
            _ => self.heads[block as usize],
        };
        // Without known slack the size may be a rounded one.
        let is_exact = self.map.end_avma(block as usize) != self.map.start_avma(block as usize) + size_bytes;
        let most_missing = if is_exact { 0 } else { ROUNDED_BYTES };
        let fits = |wanted: u64| wanted <= size_bytes && size_bytes - wanted <= most_missing;
        match offset_bytes {
            8 if size_bytes == 8 => (head == 0).then_some(EdgeGrade::ArrayCookie),
            8 if head > 0 && head.checked_add(8).is_some_and(fits) => Some(EdgeGrade::LengthPrefix),
            8 if is_array(head, size_bytes - 8, most_missing) => Some(EdgeGrade::ArrayCookie),
            1 | 3 | 5 | 9 | 17 => {
                let (least, most) = self.dynamic_string(block, head, offset_bytes)?;
                // Redis uses all bytes that the allocator gave, also beyond the requested size.
                let given_bytes =
                    size_bytes.saturating_add(size_bytes / 4).max(size_bytes.next_multiple_of(16));
                (least <= given_bytes && size_bytes <= most.saturating_add(most_missing))
                    .then_some(EdgeGrade::StringBody)
            }
            24 if self.is_counted_string(block, head, fits) => Some(EdgeGrade::StringBody),
            offset if offset % 8 == 0 && offset + 8 <= size_bytes && self.is_base(block, head, offset) => {
                Some(EdgeGrade::SecondBase)
            }
            offset if offset % 8 == 0 && offset + 8 <= size_bytes => {
                let word = self.word(block, offset / 8)?;
                match word.checked_sub(self.map.start_avma(block as usize))? {
                    0 => Some(EdgeGrade::WayBack),
                    // The data may be preceded by its length.
                    8 if head > 0 && head.checked_add(8).is_some_and(fits) => Some(EdgeGrade::WayBack),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn word(&self, block: u32, number: u64) -> Option<u64> {
        self.memory.word(self.map.start_avma(block as usize) + number * 8)
    }

    fn is_counted_string(&self, block: u32, length: u64, fits: impl Fn(u64) -> bool) -> bool {
        // The cheap test first: most blocks fail it.
        let is_length = length <= self.map.size_bytes(block as usize);
        let capacity = || self.memory.word(self.map.start_avma(block as usize) + 8);
        is_length
            && capacity()
                .is_some_and(|capacity| length <= capacity && capacity.checked_add(25).is_some_and(fits))
    }

    /// Least and most bytes of a block with a dynamic string (redis) whose text begins at `offset`.
    /// The header holds length and capacity, as wide as the kind says, and the kind behind them. A
    /// short string has length and kind in one byte.
    fn dynamic_string(&self, block: u32, head: u64, offset: u64) -> Option<(u64, u64)> {
        let word = |number: u64| self.word(block, number);
        let (kind, wanted, length, capacity) = match offset {
            1 => (head & 7, 0, head >> 3 & 31, head >> 3 & 31),
            3 => (head >> 16 & 255, 1, head & 0xff, head >> 8 & 0xff),
            5 => (head >> 32 & 255, 2, head & 0xffff, head >> 16 & 0xffff),
            // The cheap test first: reading the kind costs a memory access.
            9 if head as u32 as u64 <= head >> 32 => (word(1)? & 255, 3, head & 0xffff_ffff, head >> 32),
            17 if head <= self.map.size_bytes(block as usize) => (word(2)? & 255, 4, head, word(1)?),
            _ => return None,
        };
        let with = |bytes: u64| bytes.checked_add(offset + 1);
        (kind == wanted && length <= capacity).then_some((with(length)?, with(capacity)?))
    }

    /// Name of the type of the object at the start of a block, as the compiler mangled it; `None`
    /// without virtual functions. Their table leads to the type's description, and this to the
    /// name; no symbols are needed.
    pub(crate) fn type_name(&mut self, block: usize) -> Option<String> {
        const NAME_BYTES_MAX: usize = 1024;
        let table_avma = self.heads[block];
        if self.top_of(table_avma) != Some(0) {
            return None;
        }
        let description_avma = self.memory.word(table_avma.wrapping_sub(8)).filter(|&word| word != 0)?;
        let name_avma = self.memory.word(description_avma.wrapping_add(8))?;
        if !self.regions.is_data_of_module(name_avma) {
            return None;
        }
        let mut bytes = [0; NAME_BYTES_MAX];
        let count = self.memory.read(name_avma, &mut bytes);
        let bytes = &bytes[..count];
        let end = bytes.iter().position(|&byte| byte == 0)?;
        let name = std::str::from_utf8(&bytes[..end]).ok()?;
        // A leading star says that the type is compared by address.
        let name = name.strip_prefix('*').unwrap_or(name);
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
        is_name.then(|| name.to_owned())
    }

    /// Whether the block begins with an object with virtual functions that has a base at `offset`.
    fn is_base(&mut self, block: u32, head: u64, offset: u64) -> bool {
        if self.top_of(head) != Some(0) {
            return false;
        }
        let word = self.memory.word(self.map.start_avma(block as usize) + offset);
        word.is_some_and(|word| self.top_of(word) == Some(-offset.cast_signed()))
    }

    /// Offset to the top of the object for a table of virtual functions; `None` if the address
    /// holds no such table.
    fn top_of(&mut self, table_avma: u64) -> Option<i64> {
        if !table_avma.is_multiple_of(8) || !self.regions.is_data_of_module(table_avma) {
            return None;
        }
        if let Some(&known) = self.tables.get(&table_avma) {
            return known;
        }
        let mut words = [0; 40];
        let is_read = self.memory.read(table_avma.wrapping_sub(16), &mut words) == words.len();
        let word = |number: usize| {
            let bytes: [u8; 8] = words[number * 8..number * 8 + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        // The first functions of an abstract class may be missing.
        let has_code = || (2..5).any(|number| self.regions.is_code(word(number)));
        let top = (is_read && has_code()).then(|| word(0).cast_signed());
        self.tables.insert(table_avma, top);
        top
    }
}

/// Whether `count` elements of one size fill `bytes`.
fn is_array(count: u64, bytes: u64, most_missing: u64) -> bool {
    count > 0 && count <= bytes && bytes % count <= most_missing
}
