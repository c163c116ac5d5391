//! Names of addresses in Go functions, for files without symbols.

use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;
use object::{Object as _, ObjectSection as _};

use crate::go::TABLE_SECTIONS;
use crate::go::table::GoTable;
use crate::mapped_file::map;

/// A file with a function table.
#[derive(Debug)]
pub(crate) struct GoNames {
    bytes: Mmap,
    table: Range<usize>,
    text_svma: u64,
}

/// Name of a function, and the line of an address in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoPlace {
    pub(crate) symbol: String,
    pub(crate) line: Option<(String, u32)>,
}

impl GoNames {
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let bytes = map(path)?;
        let (table, text_svma) = {
            let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).ok()?;
            let section = TABLE_SECTIONS.iter().find_map(|name| file.section_by_name(name))?;
            let (offset, length) = section.file_range()?;
            let start = usize::try_from(offset).ok()?;
            let end = start.checked_add(usize::try_from(length).ok()?)?;
            (start..end, file.section_by_name(".text")?.address())
        };
        GoTable::of(bytes.get(table.clone())?, text_svma)?;
        Some(Self { bytes, table, text_svma })
    }

    pub(crate) fn find(&self, svma: u64) -> Option<GoPlace> {
        let table = GoTable::of(self.bytes.get(self.table.clone())?, self.text_svma)?;
        let function = table.find(svma)?;
        let line = table.line(&function, svma);
        Some(GoPlace { symbol: function.name, line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header, two functions of 16 and 32 bytes from 0x1000 on, their names, one file.
    fn made() -> Vec<u8> {
        let mut bytes = vec![0; 72];
        bytes[..4].copy_from_slice(&0xffff_fff1_u32.to_le_bytes());
        (bytes[6], bytes[7]) = (1, 8);
        let word = |bytes: &mut Vec<u8>, at: usize, value: u64| {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        };
        word(&mut bytes, 8, 2);
        word(&mut bytes, 16, 1);
        let names = bytes.len() as u64;
        bytes.extend(b"main.one\0main.two\0");
        let units = bytes.len() as u64;
        bytes.extend(0_u32.to_le_bytes());
        let files = bytes.len() as u64;
        bytes.extend(b"/src/main.go\0");
        let steps = bytes.len() as u64;
        // Files: 0 for all 32 bytes. Lines: 7 for the first four, then 9.
        bytes.extend([0, 2, 32, 0, 16, 4, 4, 28, 0]);
        let functions = bytes.len() as u64;
        let first = 2 * 8 + 4;
        for (begin, place) in [(0_u32, first), (16, first + 40)] {
            bytes.extend(begin.to_le_bytes());
            bytes.extend((place as u32).to_le_bytes());
        }
        bytes.extend(48_u32.to_le_bytes());
        for (begin, name) in [(0_u32, 0_u32), (16, 9)] {
            for value in [begin, name, 0, 0, 0, 1, 4, 0, 0, 0] {
                bytes.extend(value.to_le_bytes());
            }
        }
        for (at, value) in [(32, names), (40, units), (48, files), (56, steps), (64, functions)] {
            word(&mut bytes, at, value);
        }
        bytes
    }

    #[test]
    fn a_function_is_found_by_address_and_by_name_with_its_lines() {
        let bytes = made();
        let table = GoTable::of(&bytes, 0x1000).unwrap();
        let two = table.find(0x1011).unwrap();
        assert_eq!((two.name.as_str(), two.start_svma, two.end_svma), ("main.two", 0x1010, 0x1030));
        assert_eq!(table.named("main.two"), Some(two.clone()));
        assert_eq!(table.line(&two, 0x1012), Some(("/src/main.go".to_owned(), 7)));
        assert_eq!(table.line(&two, 0x1014), Some(("/src/main.go".to_owned(), 9)));
        assert_eq!(table.find(0xfff).or_else(|| table.find(0x1030)), None);
        assert_eq!(table.named("main.three"), None);
    }

    proptest::proptest! {
        #[test]
        fn a_table_that_lies_is_no_failure(
            changes in proptest::collection::vec((0_usize..300, 0_u8..), 1..12), cut in 0_usize..300
        ) {
            let mut bytes = made();
            for (at, byte) in changes {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            bytes.truncate(bytes.len().max(cut + 1) - cut);
            if let Some(table) = GoTable::of(&bytes, u64::MAX - 4) {
                for svma in [0, 0x1000, 0x1010, u64::MAX] {
                    if let Some(function) = table.find(svma) {
                        let _ = table.line(&function, svma);
                    }
                }
                let _ = table.named("main.two");
            }
        }
    }
}
