//! Programs and libraries: the files mapped as code, and the ends of their zeroed data.

use std::collections::{BTreeMap, HashSet};

use heapr_glibc_heap::HeapMemory;
use heapr_proc::Mapping;
use heapr_proc::page_bytes;
use heapr_proc::smaps::MappingPages;

use crate::claims::{Claim, Claims, range_of};
use crate::class::{Class, ToldBy};
use crate::subject::{file_name, is_recorders};

/// Files of which a mapping is executable.
pub(crate) struct CodeFiles<'a>(HashSet<(u64, &'a str)>);

impl<'a> CodeFiles<'a> {
    pub(crate) fn of(mappings: &'a [MappingPages]) -> Self {
        let code = mappings.iter().map(|found| &found.mapping);
        let code = code.filter(|mapping| mapping.is_executable && mapping.inode != 0);
        Self(code.map(|mapping| (mapping.inode, mapping.name.as_str())).collect())
    }

    pub(crate) fn has(&self, mapping: &Mapping) -> bool {
        mapping.inode != 0 && self.0.contains(&(mapping.inode, mapping.name.as_str()))
    }
}

/// Mappings of files that are no program, library, or shared memory, with their resident bytes
/// without written pages of private mappings.
pub fn data_files(mappings: &[MappingPages]) -> impl Iterator<Item = (&Mapping, u64)> {
    let code = CodeFiles::of(mappings);
    mappings.iter().filter_map(move |found| {
        let mapping = &found.mapping;
        let is_data = mapping.inode != 0
            && !code.has(mapping)
            && !is_shared_memory(&mapping.name)
            && !is_recorders(&mapping.name);
        let (_, rest) = found.pages.divided_by_writing();
        (is_data && rest.rss_bytes > 0).then_some((mapping, rest.rss_bytes))
    })
}

/// Whether the name of a mapping is that of memory, not of a file on a disk.
pub(crate) fn is_shared_memory(name: &str) -> bool {
    ["/memfd:", "/dev/shm/", "/dev/zero", "/SYSV"].iter().any(|start| name.starts_with(start))
}

/// Claims the zeroed data behind the written data of each program and library.
pub(crate) fn claim_zeroed_data(
    mappings: &[MappingPages],
    code: &CodeFiles<'_>,
    memory: &impl HeapMemory,
    claims: &mut Claims,
) {
    let mut ends: BTreeMap<(u64, &str), Option<u64>> = BTreeMap::new();
    let mut last: Option<&Mapping> = None;
    for mapping in mappings.iter().map(|found| &found.mapping) {
        let is_anonymous = mapping.inode == 0 && mapping.name.is_empty() && !mapping.is_shared;
        match last.filter(|last| last.end_avma == mapping.start_avma && is_anonymous) {
            Some(before) => {
                let key = (before.inode, before.name.as_str());
                let end_avma = *ends.entry(key).or_insert_with(|| data_end(mappings, before, memory));
                // Without readable headers the whole mapping counts: only the loader maps memory
                // directly behind data.
                let end_avma = end_avma.map_or(mapping.end_avma, |end| end.min(mapping.end_avma));
                if end_avma > mapping.start_avma {
                    claims.add(Claim {
                        range_avma: mapping.start_avma..end_avma,
                        class: match is_recorders(&before.name) {
                            true => Class::Recorder,
                            false => Class::WrittenData,
                        },
                        part: file_name(&before.name).to_owned(),
                        told_by: ToldBy::Place,
                    });
                }
                last = None;
            }
            None => last = Some(mapping).filter(|mapping| mapping.is_writable && code.has(mapping)),
        }
    }
}

/// End of a module's last segment, from the program headers at its first mapping.
fn data_end(mappings: &[MappingPages], part: &Mapping, memory: &impl HeapMemory) -> Option<u64> {
    const HEADER_BYTES: usize = 64;
    const PROGRAM_HEADER_BYTES: usize = 56;
    const MOST_HEADERS: usize = 128;
    const LOAD: u32 = 1;
    // The nearest mapping of offset 0 before the data: a file may be mapped twice.
    let first = mappings.iter().map(|found| &found.mapping).filter(|mapping| {
        mapping.inode == part.inode && mapping.name == part.name && mapping.start_avma <= part.start_avma
    });
    let first = first.rev().find(|mapping| mapping.file_off == 0)?;
    let mut header = [0; HEADER_BYTES];
    if memory.read(first.start_avma, &mut header) != HEADER_BYTES || header[..5] != *b"\x7fELF\x02" {
        return None;
    }
    let half = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let offset = word(&header, 32)?;
    let is_position_independent = half(16) == 3;
    let count = half(56).min(MOST_HEADERS);
    let mut table = vec![0; count * PROGRAM_HEADER_BYTES];
    if half(54) != PROGRAM_HEADER_BYTES
        || memory.read(first.start_avma.checked_add(offset)?, &mut table) != table.len()
    {
        return None;
    }
    let headers = table.chunks_exact(PROGRAM_HEADER_BYTES);
    let loads = headers.filter(|header| header[..4] == LOAD.to_le_bytes());
    let ends = loads.filter_map(|header| word(header, 16)?.checked_add(word(header, 40)?));
    let base_avma = if is_position_independent { first.start_avma } else { 0 };
    let end_avma = base_avma.checked_add(ends.max()?)?;
    end_avma.checked_next_multiple_of(page_bytes())
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

/// Claims a whole mapping.
pub(crate) fn whole(mapping: &Mapping, class: Class, part: impl Into<String>, told_by: ToldBy) -> Claim {
    Claim { range_avma: range_of(mapping), class, part: part.into(), told_by }
}
