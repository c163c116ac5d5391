//! Recognises objects of CPython: a reference count, then the address of the type. The chain of
//! types ends in a type that is its own type.
//!
//! ```text
//!  object            | count | type |            with the collector's two words before it, or without
//!  type              | count | its type | size | name ...
//!  type of all types | count | itself   | ...
//! ```
//! Only objects with a block of their own are seen. Small ones lie in the interpreter's arenas,
//! unless it runs without them (`PYTHONMALLOC=malloc`).

use std::collections::HashMap;

use heapr_known::machine::ADDRESS_LIMIT_MAX;

use crate::areas::Regions;
use crate::memory::Memory;

/// Cache of addresses that were tested for a type.
pub(crate) struct PythonTypes<'a> {
    regions: &'a Regions,
    /// Name of the type by address; `None` if the address holds no type.
    known: HashMap<u64, Option<String>>,
}

/// Largest number of addresses in the cache; bounds the work on a hostile heap.
const KNOWN_MAX: usize = 1 << 20;
const NAME_BYTES_MAX: usize = 128;
/// Largest number of steps up to the type of all types.
const UP_MAX: u32 = 4;

impl<'a> PythonTypes<'a> {
    /// Creates the cache; `None` if the process has no CPython.
    pub(crate) fn of(regions: &'a Regions) -> Option<Self> {
        regions.has_python.then(|| Self { regions, known: HashMap::new() })
    }

    /// Name of the type of the object at the start of a block, given the block's first words.
    pub(crate) fn name_of(&mut self, memory: &impl Memory, words: &[[u8; 8]]) -> Option<&str> {
        let word = |number: usize| words.get(number).map(|word| u64::from_le_bytes(*word));
        let [at, behind] = [0, 2].map(|start| {
            let is_counted = word(start).is_some_and(|count| count as u32 != 0);
            word(start + 1).filter(|_| is_counted)
        });
        let found = [at, behind].into_iter().flatten().find(|&type_avma| self.is_type(memory, type_avma))?;
        self.known.get(&found)?.as_deref()
    }

    fn is_type(&mut self, memory: &impl Memory, type_avma: u64) -> bool {
        if !type_avma.is_multiple_of(8) || !(4096..ADDRESS_LIMIT_MAX).contains(&type_avma) {
            return false;
        }
        if let Some(known) = self.known.get(&type_avma) {
            return known.is_some();
        }
        if self.known.len() >= KNOWN_MAX {
            return false;
        }
        let name = self.read(memory, type_avma);
        let is_type = name.is_some();
        self.known.insert(type_avma, name);
        is_type
    }

    fn read(&self, memory: &impl Memory, type_avma: u64) -> Option<String> {
        let of = |object_avma: u64| memory.word(object_avma.wrapping_add(8)).filter(|&it| it != 0);
        let mut up_avma = type_avma;
        let is_below_itself = (0..UP_MAX).any(|_| {
            let above = of(up_avma);
            let is_top = above == Some(up_avma);
            up_avma = above.unwrap_or(0);
            is_top
        });
        // The type of all types lies in the interpreter's data.
        if !is_below_itself || !self.regions.is_data_of_module(up_avma) {
            return None;
        }
        let name_avma = memory.word(type_avma.wrapping_add(24))?;
        let mut bytes = [0; NAME_BYTES_MAX];
        let count = memory.read(name_avma, &mut bytes).min(NAME_BYTES_MAX);
        let end = bytes[..count].iter().position(|&byte| byte == 0)?;
        let name = std::str::from_utf8(&bytes[..end]).ok()?;
        let is_name = |letter: char| letter.is_alphanumeric() || "_.<>".contains(letter);
        (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: u64 = 0x7000_0000;

    /// Memory with these words from [`DATA`] on.
    struct Words(Vec<u64>);

    impl Memory for Words {
        fn read(&self, address_avma: u64, into: &mut [u8]) -> usize {
            let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
            let Some(from) = address_avma.checked_sub(DATA) else { return 0 };
            let rest = bytes.get(from as usize..).unwrap_or_default();
            let count = rest.len().min(into.len());
            into[..count].copy_from_slice(&rest[..count]);
            count
        }
    }

    #[test]
    fn an_object_is_named_by_its_type_with_and_without_the_collectors_words() {
        let (top, own) = (DATA, DATA + 40);
        let text = |text: &[u8; 8]| u64::from_le_bytes(*text);
        let memory = Words(vec![
            1,
            top,
            0,
            DATA + 80,
            0,
            9,
            top,
            0,
            DATA + 88,
            0,
            text(b"type\0\0\0\0"),
            text(b"a.Node\0\0"),
        ]);
        let regions = Regions::made(vec![(DATA, DATA + 4096)]);
        let mut types = PythonTypes { regions: &regions, known: HashMap::new() };
        let mut name =
            |words: [u64; 4]| types.name_of(&memory, &words.map(u64::to_le_bytes)).map(str::to_owned);
        assert_eq!(name([3, own, 0, 0]), Some("a.Node".to_owned()));
        assert_eq!(name([0x5000, 0x6000, 3, own]), Some("a.Node".to_owned()));
        assert_eq!(name([1, top, 0, 0]), Some("type".to_owned()));
        assert_eq!(name([0, own, 0, 0]), None);
        assert_eq!(name([3, DATA + 8, 0, 0]), None);
        assert_eq!(name([3, !7, 3, 16]), None);
    }
}
