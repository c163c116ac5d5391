//! Headers and dynamic section of a module in the target's memory. Untrusted: all counts are
//! bounded.

use object::LittleEndian as LE;
use object::elf::{Dyn64, DynamicTag, FileHeader64, ProgramHeader64};
use object::pod;
use object::read::elf::{Dyn as _, FileHeader as _};

use crate::memory::{TargetMemory, Unreachable};

/// Largest number of program headers that is read; usual files have about a dozen.
const PROGRAM_HEADERS_MAX: u64 = 1000;
/// Largest number of entries of a dynamic section that is read; usual ones have about 30.
const DYNAMIC_ENTRIES_MAX: usize = 4096;

/// Reads the program headers of the module whose file begins at `header_avma`. `None`: the file is
/// not for this kind of processor, or not readable.
pub(crate) fn program_headers(
    memory: &impl TargetMemory,
    header_avma: u64,
) -> Option<Vec<ProgramHeader64<LE>>> {
    let file = memory.read_vec(header_avma, size_of::<FileHeader64<LE>>()).ok()?;
    let (header, _) = pod::from_bytes::<FileHeader64<LE>>(&file).ok()?;
    if !header.is_supported() || header.endian().is_err() {
        return None;
    }
    let headers_avma = header_avma.wrapping_add(header.e_phoff(LE));
    program_headers_at(memory, headers_avma, u64::from(header.e_phnum(LE))).ok()
}

/// Reads so many program headers at an address; of too many the first ones.
pub(crate) fn program_headers_at(
    memory: &impl TargetMemory,
    headers_avma: u64,
    count: u64,
) -> Result<Vec<ProgramHeader64<LE>>, Unreachable> {
    let count = count.min(PROGRAM_HEADERS_MAX) as usize;
    let bytes = memory.read_vec(headers_avma, count * size_of::<ProgramHeader64<LE>>())?;
    let (headers, _) = pod::slice_from_bytes(&bytes, count).unwrap_or_default();
    Ok(headers.to_vec())
}

/// Shows the entries of a dynamic section, with their values, to `visit`. Ends where that returns
/// something, or at the section's end.
pub(crate) fn find_dynamic<T>(
    memory: &impl TargetMemory,
    dynamic_avma: u64,
    mut visit: impl FnMut(DynamicTag, u64) -> Option<T>,
) -> Result<Option<T>, Unreachable> {
    const ENTRY: u64 = size_of::<Dyn64<LE>>() as u64;
    const PIECE: u64 = 1024;
    let (mut at_avma, mut seen) = (dynamic_avma, 0);
    while seen < DYNAMIC_ENTRIES_MAX {
        // Each read ends before a multiple of `PIECE`, so that it touches no page behind the one
        // with the section's end.
        let count = ((PIECE - at_avma % PIECE) / ENTRY).max(1) as usize;
        let bytes = memory.read_vec(at_avma, count * ENTRY as usize)?;
        let (entries, _) = pod::slice_from_bytes::<Dyn64<LE>>(&bytes, count).unwrap_or_default();
        for entry in entries {
            if entry.d_tag(LE) == object::elf::DT_NULL {
                return Ok(None);
            }
            if let Some(found) = visit(entry.d_tag(LE), entry.d_val(LE)) {
                return Ok(Some(found));
            }
        }
        seen += count;
        at_avma = at_avma.wrapping_add(count as u64 * ENTRY);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use object::elf::{DT_DEBUG, DT_STRTAB, PT_LOAD};
    use object::read::elf::ProgramHeader as _;

    use super::*;
    use crate::memory::ProcessMemory;

    #[test]
    fn this_program_has_headers_and_a_dynamic_section_ends() {
        let memory = ProcessMemory::open(std::process::id()).unwrap();
        let mappings = memory.mappings().unwrap();
        let exe = std::fs::read_link("/proc/self/exe").unwrap();
        let own = mappings.iter().find(|mapping| exe.as_os_str() == mapping.name.as_str()).unwrap();
        let headers = program_headers(&memory, own.start_avma).unwrap();
        assert!(headers.iter().any(|header| header.p_type(LE) == PT_LOAD));
        assert!(program_headers(&memory, own.start_avma + 1).is_none());
        assert!(program_headers_at(&memory, 8, 3).is_err());
        // More entries than a piece has, at any alignment; what is behind the end is not seen.
        for before in [0, 8, 24] {
            let mut words = vec![0_u64; before / 8];
            words.extend((0..300).flat_map(|number| [DT_STRTAB.0 as u64, number]));
            words.extend([0, 0, DT_DEBUG.0 as u64, 7]);
            let avma = words.as_ptr() as u64 + before as u64;
            let mut seen = 0;
            let none = find_dynamic::<()>(&memory, avma, |tag, value| {
                assert_eq!((tag, value), (DT_STRTAB, seen));
                seen += 1;
                None
            });
            assert_eq!((none, seen), (Ok(None), 300));
            assert_eq!(
                find_dynamic(&memory, avma, |_, value| (value == 250).then_some(value)),
                Ok(Some(250))
            );
        }
        assert!(find_dynamic(&memory, 8, |_, _| Some(())).is_err());
        let endless = vec![1_u64; DYNAMIC_ENTRIES_MAX * 4];
        let none = find_dynamic::<()>(&memory, endless.as_ptr() as u64, |_, _| None);
        assert_eq!(none, Ok(None));
    }
}
