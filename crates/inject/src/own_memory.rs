//! Memory that this process does not need any more: returned to the system.

use heapr_proc::smaps::{self, MappingPages};

/// Makes the C library return large freed blocks and the free end of the heap to the system.
///
/// For processes that need much memory for a moment (a program's modules during an attach), and
/// then run for days. The C library would otherwise raise its threshold for large blocks and hold
/// the memory.
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE_BYTES: libc::c_int = 128 << 10;
        for (parameter, value) in [
            (libc::M_MMAP_THRESHOLD, LARGE_BYTES),
            (libc::M_TRIM_THRESHOLD, LARGE_BYTES),
            (libc::M_ARENA_MAX, 1),
        ] {
            // SAFETY: the call has no preconditions; if it fails, nothing changes.
            let _ = unsafe { libc::mallopt(parameter, value) };
        }
    }
}

/// Unmaps this program's own code and constants, which the kernel keeps and maps again where they
/// are used.
///
/// For the same processes: a start and an attach run code that nothing runs for days after them.
pub fn give_back_code() {
    for found in own_segments() {
        let (Ok(start), Ok(bytes)) =
            (usize::try_from(found.mapping.start_avma), usize::try_from(found.mapping.bytes()))
        else {
            continue;
        };
        let start: *mut libc::c_void = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: `own_segments` guarantees a segment of this program's file. It stays until the
        // program ends, is not writable and has no written page, so that the file has the same
        // bytes.
        let _ = unsafe { libc::madvise(start, bytes, libc::MADV_DONTNEED) };
    }
}

/// Returns the segments of this program's file without a written page. A debugger may have
/// written.
fn own_segments() -> Vec<MappingPages> {
    let Ok(program) = std::fs::read_link("/proc/self/exe") else { return Vec::new() };
    let mut all = smaps::read(std::process::id()).unwrap_or_default();
    all.retain(|found| {
        let mapping = &found.mapping;
        let is_unwritten = found.pages.anonymous_bytes == 0 && found.pages.swapped_bytes == 0;
        let is_program = program.as_os_str() == mapping.name.as_str();
        is_program && is_unwritten && mapping.inode != 0 && !mapping.is_writable && !mapping.is_shared
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_bytes() -> (u64, u64) {
        let own = own_segments().into_iter().filter(|found| found.mapping.is_executable);
        own.fold((0, 0), |(mapped, resident), found| {
            (mapped + found.mapping.bytes(), resident + found.pages.rss_bytes)
        })
    }

    #[test]
    fn code_that_is_given_back_is_not_resident_and_runs_on() {
        for found in own_segments().iter().filter(|found| found.mapping.is_executable) {
            for address in (found.mapping.start_avma..found.mapping.end_avma).step_by(4096) {
                let address: *const u8 = std::ptr::with_exposed_provenance(address as usize);
                // SAFETY: the address lies in a mapped segment of this program, which is readable.
                std::hint::black_box(unsafe { address.read_volatile() });
            }
        }
        let (mapped, resident) = code_bytes();
        assert!(mapped > 0 && resident > mapped / 2, "{resident} of {mapped}");
        give_back_code();
        assert!(code_bytes().1 < resident / 2);
    }
}
