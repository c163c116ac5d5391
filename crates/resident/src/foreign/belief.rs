//! Decides whether memory that looks like an allocator's tables is one.
//!
//! A page map is recognised by few words, and any words may look like one. It is believed if a
//! module of the process names the allocator in its constants. The heap that it describes must also
//! fit the process: all of it mapped, and each address described once.

use heapr_glibc_heap::HeapMemory;
use heapr_proc::smaps::MappingPages;

use super::heap::HeapPart;
use crate::subject::{Subject, file_name};

/// Divisor of the share of a heap's bytes that may be wrong: the process runs while it is read.
const WRONG_ONE_OF: u64 = 16;

/// Whether a module contains an allocator, by its file name or its constants.
pub(super) fn module_has(subject: &Subject, module: &str, allocator: &str, memory: &impl HeapMemory) -> bool {
    module.contains(allocator) || names(subject, module, allocator, memory)
}

/// Whether any module contains an allocator.
pub(super) fn any_module_has(subject: &Subject, allocator: &str, memory: &impl HeapMemory) -> bool {
    let mut modules: Vec<&str> = code(subject).map(|found| file_name(&found.mapping.name)).collect();
    modules.sort_unstable();
    modules.dedup();
    // The test without reading comes first.
    modules.iter().any(|module| module.contains(allocator))
        || modules.iter().any(|module| names(subject, module, allocator, memory))
}

fn code(subject: &Subject) -> impl Iterator<Item = &MappingPages> {
    subject.mappings.iter().filter(|found| found.mapping.is_executable && found.mapping.inode != 0)
}

/// Whether the constants of a module name an allocator, as in its messages and settings.
pub(super) fn names(subject: &Subject, module: &str, allocator: &str, memory: &impl HeapMemory) -> bool {
    /// Largest number of bytes read of a module's constants.
    const MOST_BYTES: u64 = 1 << 30;
    const AT_ONCE: u64 = 4 << 20;
    let constants = subject.mappings.iter().map(|found| &found.mapping).filter(|mapping| {
        // A small program may have one mapping for constants and code.
        let is_constant = mapping.is_readable && !mapping.is_writable;
        is_constant && mapping.inode != 0 && file_name(&mapping.name) == module
    });
    let mut left = MOST_BYTES;
    let mut bytes = Vec::new();
    for mapping in constants {
        let mut at_avma = mapping.start_avma;
        while at_avma < mapping.end_avma && left > 0 {
            // A name may lie across the border of two pieces.
            let length = (mapping.end_avma - at_avma).min(AT_ONCE + allocator.len() as u64);
            bytes.resize(length as usize, 0);
            let read = memory.read(at_avma, &mut bytes);
            if memchr::memmem::find(&bytes[..read], allocator.as_bytes()).is_some() {
                return true;
            }
            at_avma += AT_ONCE;
            left = left.saturating_sub(AT_ONCE);
        }
    }
    false
}

/// Whether the parts of a heap are plausible: they lie in memory without a file, and overlap
/// hardly.
pub(super) fn fits(parts: &[HeapPart], mappings: &[MappingPages]) -> bool {
    let mut ranges: Vec<(u64, u64)> =
        parts.iter().map(|part| (part.range_avma.start, part.range_avma.end)).collect();
    ranges.sort_unstable();
    let (mut all, mut wrong, mut end) = (0_u64, 0_u64, 0_u64);
    for (start_avma, end_avma) in ranges {
        let bytes = end_avma.saturating_sub(start_avma);
        all = all.saturating_add(bytes);
        let twice = end.min(end_avma).saturating_sub(start_avma);
        let outside = bytes - mapped_bytes(start_avma, end_avma, mappings).min(bytes);
        wrong = wrong.saturating_add(twice.max(outside));
        end = end.max(end_avma);
    }
    all > 0 && wrong <= all / WRONG_ONE_OF
}

/// Bytes of a range that are mapped without a file.
fn mapped_bytes(start_avma: u64, end_avma: u64, mappings: &[MappingPages]) -> u64 {
    let first = mappings.partition_point(|found| found.mapping.end_avma <= start_avma);
    let inside = mappings
        .get(first..)
        .unwrap_or_default()
        .iter()
        .take_while(|found| found.mapping.start_avma < end_avma);
    let own = inside.map(|found| &found.mapping).filter(|mapping| mapping.inode == 0);
    own.map(|mapping| mapping.end_avma.min(end_avma) - mapping.start_avma.max(start_avma)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::heap::PartKind;
    use super::*;

    fn parts(ranges: &[(u64, u64)]) -> Vec<HeapPart> {
        let part = |&(start, end): &(u64, u64)| HeapPart {
            range_avma: start..end,
            kind: PartKind::Block,
            live_bytes: end - start,
        };
        ranges.iter().map(part).collect()
    }

    #[test]
    fn what_is_told_of_a_heap_lies_in_memory_that_is_mapped_and_is_told_once() {
        let text = "100000-200000 rw-p 00000000 00:00 0 \n200000-300000 ---p 00000000 00:00 0 \n\
                    400000-500000 r--p 00000000 fe:00 7 /lib/x\n";
        let mappings = heapr_proc::smaps::parse(text.as_bytes()).unwrap();
        assert!(fits(&parts(&[(0x10_0000, 0x1f_0000), (0x1f_0000, 0x28_0000)]), &mappings));
        // Memory that was just unmapped is tolerated.
        assert!(fits(&parts(&[(0x10_0000, 0x2f_0000), (0x35_0000, 0x35_1000)]), &mappings));
        assert!(!fits(&parts(&[(0x10_0000, 0x20_0000), (0x10_1000, 0x1f_0000)]), &mappings));
        assert!(!fits(&parts(&[(0x10_0000, 0x11_0000), (0x1000_0000, 0x7fff_0000_0000)]), &mappings));
        assert!(!fits(&parts(&[(0x41_0000, 0x42_0000)]), &mappings), "a file's memory is no heap");
        assert!(!fits(&[], &mappings));
    }
}
