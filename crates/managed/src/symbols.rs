//! Dynamic symbols of a loaded module, read from its memory.

use heapr_proc::Mapping;

use crate::pages::Pages;

const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
/// Unit in which memory is mapped.
const PAGE_BYTES: u64 = 4096;
const SYMBOL_BYTES: u64 = 24;
const NAME_BYTES_MAX: usize = 128;
/// Largest number of entries of the dynamic section, and of program headers.
const ENTRIES_MAX: u64 = 512;
/// Largest number of symbols of one hash chain.
const CHAIN_MAX: u32 = 1 << 16;

/// A symbol of a loaded module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) address_avma: u64,
    pub(crate) size_bytes: u64,
}

/// Tables of a loaded module's dynamic symbols.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Module {
    bias: u64,
    strings_avma: u64,
    symbols_avma: u64,
    hash_avma: u64,
}

impl Module {
    /// Reads the tables of the module whose file begins at `start_avma`.
    pub(crate) fn at(pages: &Pages<'_>, start_avma: u64) -> Option<Self> {
        let mut head = [0; 64];
        if !pages.read(start_avma, &mut head) || head[..5] != *b"\x7fELF\x02" {
            return None;
        }
        let headers_avma = start_avma.checked_add(pages.word(start_avma + 32)?)?;
        let count = u64::from(u16::from_le_bytes([head[56], head[57]])).min(ENTRIES_MAX);
        let (mut bias, mut dynamic) = (None, None);
        for number in 0..count {
            let at_avma = headers_avma.checked_add(number * 56)?;
            let (kind, address) = (pages.half(at_avma)?, word_at(pages, at_avma, 16)?);
            if kind == PT_LOAD && word_at(pages, at_avma, 8)? == 0 {
                bias = bias.or(Some(start_avma.wrapping_sub(address)));
            }
            if kind == PT_DYNAMIC {
                dynamic = Some(address);
            }
        }
        let (bias, dynamic) = (bias?, dynamic?);
        let mut module = Self { bias, strings_avma: 0, symbols_avma: 0, hash_avma: 0 };
        for number in 0..ENTRIES_MAX {
            let at_avma = bias.wrapping_add(dynamic).checked_add(number * 16)?;
            let (tag, value) = (pages.word(at_avma)?, word_at(pages, at_avma, 8)?);
            // The loader makes addresses of these in most libraries, but not in all.
            let address_avma = if value < start_avma { bias.wrapping_add(value) } else { value };
            match tag {
                0 => break,
                DT_STRTAB => module.strings_avma = address_avma,
                DT_SYMTAB => module.symbols_avma = address_avma,
                DT_GNU_HASH => module.hash_avma = address_avma,
                _ => {}
            }
        }
        (module.strings_avma != 0 && module.symbols_avma != 0 && module.hash_avma != 0).then_some(module)
    }

    /// Finds a defined symbol by its GNU hash.
    pub(crate) fn find(&self, pages: &Pages<'_>, name: &str) -> Option<Symbol> {
        let hash = name.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(byte.into()));
        let head = |number: u64| half_at(pages, self.hash_avma, number * 4);
        let (bucket_count, first, bloom_words) = (head(0)?, head(1)?, head(2)?);
        if bucket_count == 0 {
            return None;
        }
        let buckets_avma = self.hash_avma.checked_add(16 + u64::from(bloom_words) * 8)?;
        let chains_avma = buckets_avma.checked_add(u64::from(bucket_count) * 4)?;
        let mut number = half_at(pages, buckets_avma, u64::from(hash % bucket_count) * 4)?;
        for _ in 0..CHAIN_MAX {
            let chain = u64::from(number.checked_sub(first)?);
            let value = half_at(pages, chains_avma, chain * 4)?;
            if value | 1 == hash | 1 {
                let at_avma = self.symbols_avma.checked_add(u64::from(number) * SYMBOL_BYTES)?;
                let name_avma = self.strings_avma.checked_add(pages.half(at_avma)?.into())?;
                let address = word_at(pages, at_avma, 8)?;
                if address != 0 && pages.text(name_avma, NAME_BYTES_MAX).as_deref() == Some(name) {
                    let address_avma = self.bias.wrapping_add(address);
                    return Some(Symbol { address_avma, size_bytes: word_at(pages, at_avma, 16)? });
                }
            }
            if value & 1 == 1 {
                return None;
            }
            number = number.checked_add(1)?;
        }
        None
    }
}

/// End of the memory of the module whose file begins at `start_avma`, by its program headers. The
/// kernel may join memory of others to its last mapping.
pub(crate) fn end_of_module(pages: &Pages<'_>, start_avma: u64) -> Option<u64> {
    let mut head = [0; 64];
    if !pages.read(start_avma, &mut head) || head[..5] != *b"\x7fELF\x02" {
        return None;
    }
    let headers_avma = start_avma.checked_add(pages.word(start_avma + 32)?)?;
    let count = u64::from(u16::from_le_bytes([head[56], head[57]])).min(ENTRIES_MAX);
    let (mut bias, mut end) = (None, 0);
    for number in 0..count {
        let at_avma = headers_avma.checked_add(number * 56)?;
        if pages.half(at_avma)? != PT_LOAD {
            continue;
        }
        let (file_off, address) = (word_at(pages, at_avma, 8)?, word_at(pages, at_avma, 16)?);
        if file_off == 0 {
            bias = bias.or(Some(start_avma.wrapping_sub(address)));
        }
        end = end.max(address.checked_add(word_at(pages, at_avma, 40)?)?);
    }
    bias?.wrapping_add(end).checked_next_multiple_of(PAGE_BYTES)
}

/// Reads a word at an offset. Addresses of a damaged table may be any number.
fn word_at(pages: &Pages<'_>, avma: u64, offset: u64) -> Option<u64> {
    pages.word(avma.checked_add(offset)?)
}

/// Reads four bytes at an offset.
fn half_at(pages: &Pages<'_>, avma: u64, offset: u64) -> Option<u32> {
    pages.half(avma.checked_add(offset)?)
}

/// Modules that are mapped from the start of their file: the mapping's start and name.
pub(crate) fn module_starts(mappings: &[Mapping]) -> impl Iterator<Item = (u64, &str)> {
    mappings
        .iter()
        .filter(|mapping| mapping.file_off == 0 && mapping.inode != 0 && !mapping.is_shared)
        .map(|mapping| (mapping.start_avma, mapping.name.as_str()))
}

/// Written memory of a module: mappings of its file, and the anonymous one behind them.
pub(crate) fn data_of<'a>(mappings: &'a [Mapping], module: &'a str) -> impl Iterator<Item = (u64, u64)> + 'a {
    let mut last_end_avma = 0;
    mappings.iter().filter_map(move |mapping| {
        let is_own = mapping.inode != 0 && mapping.name == module;
        let is_behind = mapping.inode == 0 && mapping.name.is_empty() && mapping.start_avma == last_end_avma;
        if is_own || is_behind {
            last_end_avma = mapping.end_avma;
        }
        let is_data = mapping.is_readable && mapping.is_writable && !mapping.is_shared;
        ((is_own || is_behind) && is_data).then_some((mapping.start_avma, mapping.end_avma))
    })
}

#[cfg(test)]
mod tests {
    use heapr_native::Memory;

    use super::*;

    const START_AVMA: u64 = 0x10_0000;

    /// A file whose second segment has 0x2345 bytes at 0x8100.
    struct File;

    impl Memory for File {
        fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
            if address_avma != START_AVMA {
                return 0;
            }
            into.fill(0);
            into[..6].copy_from_slice(b"\x7fELF\x02\x01");
            let words = [(32, 64), (56, 2), (64, 1), (104, 0x1000), (120, 1), (128, 0x2000), (136, 0x8100)];
            for (at, word) in words.into_iter().chain([(160, 0x2345)]) {
                into[at..at + 8].copy_from_slice(&u64::to_le_bytes(word));
            }
            into.len()
        }
    }

    #[test]
    fn a_module_ends_with_the_page_of_its_last_segment() {
        let pages = Pages::of(&File);
        assert_eq!(end_of_module(&pages, START_AVMA), Some(START_AVMA + 0xb000));
        assert_eq!(end_of_module(&pages, START_AVMA + 0x1000), None);
    }
}
