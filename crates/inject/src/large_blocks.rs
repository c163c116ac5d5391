//! Large blocks of heapr itself: columns of a heap of gigabytes, above all.
//!
//! Each is a mapping of its own: anonymous memory, or, where memory is scarce, a file that has no
//! name any more. The kernel writes out what is not in use, and drops all of it when heapr ends.
//! Huge pages do not pay: what they save in walks, the kernel needs to find and clear them.

use std::alloc::Layout;
use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd as _;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Least size of a large block.
const LEAST_BYTES: usize = 8 << 20;
/// Size of a page: mappings have no larger alignment.
const PAGE_BYTES: usize = 4096;
/// Length of the file of each block, most of it a hole. A block grows in place up to here.
const FILE_BYTES: i64 = 1 << 40;
/// Stands for no folder.
const NO_FOLDER: i32 = -1;

/// Descriptor of the folder in which the blocks' files are made.
static FOLDER: AtomicI32 = AtomicI32::new(NO_FOLDER);

/// Puts all large blocks from now on into files without a name in a folder.
///
/// The caller has checked that the folder's disk has room. A write to a page without room ends the
/// process.
///
/// # Errors
/// A folder whose file system has no files without a name, or a limit of the size of files.
pub fn keep_large_blocks_in(folder: &File) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is written.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur != libc::RLIM_INFINITY {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let folder = folder.try_clone()?.into_raw_fd();
    match new_file(folder) {
        Some(file) => close(file),
        None => {
            let error = io::Error::last_os_error();
            close(folder);
            return Err(error);
        }
    }
    // Blocks may be made at this moment: the earlier descriptor stays open.
    FOLDER.store(folder, Relaxed);
    Ok(())
}

/// Whether a block is one of these. It depends on the layout alone, so that a block needs no mark.
#[inline]
pub(crate) fn is_large(layout: Layout) -> bool {
    layout.size() >= LEAST_BYTES && layout.align() <= PAGE_BYTES
}

/// Makes a block of zeros. Null if there is no memory.
#[cold]
pub(crate) fn make(bytes: usize) -> *mut u8 {
    let folder = FOLDER.load(Relaxed);
    if folder == NO_FOLDER { in_memory(bytes) } else { in_file(folder, bytes) }
}

/// Gives a block back.
///
/// # Safety
/// The block is one of [`make`] or [`resize`], of so many bytes, and no longer in use.
#[cold]
pub(crate) unsafe fn give_back(block: *mut u8, bytes: usize) {
    // SAFETY: the mapping is the block's own.
    unsafe { libc::munmap(block.cast(), bytes) };
}

/// Changes the size of a block, which may move. Null if there is no memory: the block is as before.
///
/// # Safety
/// As for [`give_back`]; the caller uses only the result afterwards, if that is not null.
#[cold]
pub(crate) unsafe fn resize(block: *mut u8, bytes: usize, new_bytes: usize) -> *mut u8 {
    // SAFETY: the mapping is the block's own, and its old place is not used any more.
    let moved = unsafe { libc::mremap(block.cast(), bytes, new_bytes, libc::MREMAP_MAYMOVE) };
    if moved == libc::MAP_FAILED { ptr::null_mut() } else { moved.cast() }
}

fn in_memory(bytes: usize) -> *mut u8 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping.
    let place = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
    if place == libc::MAP_FAILED { ptr::null_mut() } else { place.cast() }
}

fn in_file(folder: i32, bytes: usize) -> *mut u8 {
    let Some(file) = new_file(folder) else { return ptr::null_mut() };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping. It keeps the file, also when the descriptor is closed.
    let place = unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, file, 0) };
    close(file);
    if place == libc::MAP_FAILED { ptr::null_mut() } else { place.cast() }
}

/// Opens a file without a name, long enough for each block.
fn new_file(folder: i32) -> Option<i32> {
    let how = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC | libc::O_EXCL;
    // SAFETY: the path ends with a zero.
    let file = unsafe { libc::openat(folder, c".".as_ptr(), how, 0o600) };
    if file < 0 {
        return None;
    }
    // SAFETY: the descriptor was just opened.
    if unsafe { libc::ftruncate(file, FILE_BYTES) } != 0 {
        close(file);
        return None;
    }
    Some(file)
}

fn close(descriptor: i32) {
    // SAFETY: the descriptor is this file's own, and not used afterwards.
    unsafe { libc::close(descriptor) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a block, lets it grow and shrink, and checks its contents.
    fn check_block() {
        let bytes = LEAST_BYTES + 12_345;
        let block = make(bytes);
        assert!(!block.is_null());
        // SAFETY: the block has `bytes`, and is this test's own.
        unsafe {
            assert_eq!((*block, *block.add(bytes - 1)), (0, 0));
            *block.add(bytes - 1) = 7;
            let grown = resize(block, bytes, 9 * bytes);
            assert!(!grown.is_null());
            assert_eq!((*grown.add(bytes - 1), *grown.add(bytes), *grown.add(9 * bytes - 1)), (7, 0, 0));
            // Something behind it makes it move.
            *grown.add(9 * bytes - 1) = 8;
            let moved = resize(grown, 9 * bytes, 40 * bytes);
            assert_eq!((*moved.add(bytes - 1), *moved.add(9 * bytes - 1)), (7, 8));
            let shrunk = resize(moved, 40 * bytes, bytes);
            assert_eq!(*shrunk.add(bytes - 1), 7);
            give_back(shrunk, bytes);
        }
    }

    #[test]
    fn blocks_keep_their_contents_in_memory_and_in_files() {
        assert!(is_large(Layout::from_size_align(LEAST_BYTES, 8).unwrap()));
        assert!(!is_large(Layout::from_size_align(LEAST_BYTES - 1, 8).unwrap()));
        check_block();
        let folder = tempfile::tempdir().unwrap();
        keep_large_blocks_in(&File::open(folder.path()).unwrap()).unwrap();
        check_block();
        // The files have no names, and the mappings are of this folder.
        let block = make(LEAST_BYTES);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let begins = format!("{:x}-", block.addr());
        let line = maps.lines().find(|line| line.starts_with(&begins)).unwrap();
        assert!(line.contains(folder.path().to_str().unwrap()) && line.ends_with("(deleted)"), "{line}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // SAFETY: the block is not used any more.
        unsafe { give_back(block, LEAST_BYTES) };
        FOLDER.store(NO_FOLDER, Relaxed);
        let missing = keep_large_blocks_in(&File::open("/proc").unwrap());
        assert!(missing.is_err());
    }
}
