//! Pages of a mapping that the process itself has written: pages that differ from the file's, or
//! from untouched zero pages.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

use heapr_proc::Mapping;
use heapr_proc::page_bytes;

/// Number of entries of the page map that are read at once. The next constant is the size of the
/// largest mapping that is read so.
const BATCH_PAGES: u64 = 64 << 10;
const LARGEST_BYTES: u64 = 64 << 30;

/// Parts of a range, in whole pages, that the process may have written; `None` if the kernel does
/// not report them.
pub(crate) fn written_parts(page_map: &File, start_avma: u64, end_avma: u64) -> Option<Vec<(u64, u64)>> {
    let (start_avma, end_avma) = (start_avma & !(page_bytes() - 1), end_avma & !(page_bytes() - 1));
    let read_each = || read(page_map, start_avma, end_avma, |entry| entry & IS_FILE == 0);
    scanned(page_map, start_avma, end_avma).or_else(read_each)
}

/// Parts of a range, in whole pages, that are in memory or swapped out; `None` if the kernel does
/// not report them.
pub(crate) fn present_parts(page_map: &File, start_avma: u64, end_avma: u64) -> Option<Vec<(u64, u64)>> {
    let (start_avma, end_avma) = (start_avma & !(page_bytes() - 1), end_avma & !(page_bytes() - 1));
    read(page_map, start_avma, end_avma, |_| true)
}

/// Parts of a shared memory mapping that have content, in whole pages; `None` for another mapping,
/// or if its file may not be read.
pub(crate) fn data_parts(pid: u32, mapping: &Mapping) -> Option<Vec<(u64, u64)>> {
    /// Type of the filesystem in `statfs`.
    const TMPFS: i64 = 0x0102_1994;
    const NAMES: [&str; 4] = ["/memfd:", "/dev/zero", "/SYSV", "/dev/shm/"];
    let &Mapping { start_avma, end_avma, file_off, .. } = mapping;
    if !NAMES.iter().any(|name| mapping.name.starts_with(name)) {
        return None;
    }
    let name = format!("map_files/{start_avma:x}-{end_avma:x}");
    let file = File::open(heapr_proc::folder(pid).join(name)).ok()?;
    // SAFETY: the structure is plain data, which the kernel writes whole.
    let kind = unsafe {
        let mut facts: libc::statfs = std::mem::zeroed();
        (libc::fstatfs(file.as_raw_fd(), &raw mut facts) == 0).then_some(facts.f_type as i64)
    };
    if kind != Some(TMPFS) {
        return None;
    }
    let seek = |from: u64, what: libc::c_int| {
        // SAFETY: no pointers are passed.
        let place = unsafe { libc::lseek(file.as_raw_fd(), libc::off_t::try_from(from).ok()?, what) };
        u64::try_from(place).ok()
    };
    let end = file_off.saturating_add(end_avma - start_avma);
    let (mut found, mut at) = (Vec::new(), file_off);
    while at < end {
        // SEEK_DATA fails if only a hole follows.
        let Some(data) = seek(at, libc::SEEK_DATA).filter(|&data| data < end) else { break };
        let hole = seek(data, libc::SEEK_HOLE)?.min(end);
        let first = data & !(page_bytes() - 1);
        let last = hole.next_multiple_of(page_bytes());
        found.push((start_avma + (first - file_off), start_avma + (last - file_off)));
        at = last.max(at + page_bytes());
    }
    Some(joined(found.into_iter()))
}

/// Layout of `struct pm_scan_arg`.
#[derive(Default)]
#[repr(C)]
struct ScanRequest {
    bytes: u64,
    flags: u64,
    start_avma: u64,
    end_avma: u64,
    walk_end_avma: u64,
    regions: u64,
    region_count: u64,
    pages_max: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}

/// Layout of `struct page_region`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Region {
    start_avma: u64,
    end_avma: u64,
    categories: u64,
}

/// Reads the runs of written pages from the kernel (Linux 6.7).
fn scanned(page_map: &File, start_avma: u64, end_avma: u64) -> Option<Vec<(u64, u64)>> {
    const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;
    const IS_FILE: u64 = 1 << 2;
    const IS_PRESENT: u64 = 1 << 3;
    const IS_SWAPPED: u64 = 1 << 4;
    const IS_ZERO: u64 = 1 << 5;
    let mut found = Vec::new();
    let mut at_avma = start_avma;
    while at_avma < end_avma {
        let mut regions = [Region::default(); 512];
        let mut request = ScanRequest {
            bytes: size_of::<ScanRequest>() as u64,
            start_avma: at_avma,
            end_avma,
            regions: regions.as_mut_ptr() as u64,
            region_count: regions.len() as u64,
            inverted: IS_FILE | IS_ZERO,
            all_of: IS_FILE | IS_ZERO,
            any_of: IS_PRESENT | IS_SWAPPED,
            returned: IS_PRESENT | IS_SWAPPED,
            ..ScanRequest::default()
        };
        // SAFETY: the request has the layout of the kernel's header, and refers to `regions` with
        // its length; both are exclusive for the call.
        let count = unsafe { libc::ioctl(page_map.as_raw_fd(), PAGEMAP_SCAN, &raw mut request) };
        let count = usize::try_from(count).ok()?;
        found.extend(regions.iter().take(count).map(|region| (region.start_avma, region.end_avma)));
        if request.walk_end_avma <= at_avma {
            return None;
        }
        at_avma = request.walk_end_avma;
    }
    Some(joined(found.into_iter()))
}

/// Bits 63 and 62 of an entry: in memory, swapped out. Bit 61: of a file or shared.
const PRESENT_OR_SWAPPED: u64 = 0b11 << 62;
const IS_FILE: u64 = 1 << 61;

/// Reads the entry of each page; returns the runs of existing pages that are wanted.
fn read(
    page_map: &File,
    start_avma: u64,
    end_avma: u64,
    is_wanted: impl Fn(u64) -> bool,
) -> Option<Vec<(u64, u64)>> {
    if end_avma.saturating_sub(start_avma) > LARGEST_BYTES {
        return None;
    }
    let mut found = Vec::new();
    let mut at_avma = start_avma;
    while at_avma < end_avma {
        let count = ((end_avma - at_avma) / page_bytes()).min(BATCH_PAGES);
        let mut entries = vec![0; count as usize * 8];
        page_map.read_exact_at(&mut entries, at_avma / page_bytes() * 8).ok()?;
        for (number, entry) in entries.as_chunks::<8>().0.iter().enumerate() {
            let entry = u64::from_le_bytes(*entry);
            if entry & PRESENT_OR_SWAPPED != 0 && is_wanted(entry) {
                let page_avma = at_avma + number as u64 * page_bytes();
                found.push((page_avma, page_avma + page_bytes()));
            }
        }
        at_avma += count * page_bytes();
    }
    Some(joined(found.into_iter()))
}

/// Joins adjacent runs.
fn joined(runs: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start_avma, end_avma) in runs {
        match joined.last_mut() {
            Some(last) if last.1 == start_avma => last.1 = end_avma,
            _ => joined.push((start_avma, end_avma)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_written_are_told_from_those_that_were_only_mapped() {
        let bytes = 16 * page_bytes() as usize;
        // SAFETY: a new mapping, which is exclusive to this test.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        let at = |page: u64| start as u64 + page * page_bytes();
        for page in [3, 4, 9] {
            // SAFETY: inside of the mapping.
            unsafe { (at(page) as *mut u8).write_volatile(1) };
        }
        let page_map = File::open("/proc/self/pagemap").unwrap();
        let expected = [(at(3), at(5)), (at(9), at(10))];
        assert_eq!(written_parts(&page_map, at(0), at(16)).unwrap(), expected);
        assert_eq!(read(&page_map, at(0), at(16), |_| true).unwrap(), expected);
        // SAFETY: as it was mapped.
        unsafe { libc::munmap(start, bytes) };
    }

    #[test]
    fn holes_of_shared_memory_are_not_among_its_parts() {
        let bytes = 16 * page_bytes() as usize;
        // SAFETY: a new mapping, which is exclusive to this test.
        let start = unsafe {
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        let at = |page: u64| start as u64 + page * page_bytes();
        for page in [2, 3, 9] {
            // SAFETY: inside of the mapping.
            unsafe { (at(page) as *mut u8).write_volatile(1) };
        }
        let mappings = heapr_proc::mappings::read(std::process::id()).unwrap();
        let mapping = heapr_proc::mappings::find(&mappings, at(0)).unwrap();
        let mapping = Mapping { start_avma: at(0), ..mapping.clone() };
        let found = data_parts(std::process::id(), &mapping);
        // Ordinary users may not read mapped files.
        if let Some(found) = found {
            assert_eq!(found, [(at(2), at(4)), (at(9), at(10))]);
        }
        // SAFETY: as it was mapped.
        unsafe { libc::munmap(start, bytes) };
    }
}
