//! Memory of this process: its mappings, and questions about them.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use heapr_wire::arch::call_numbers as number;

use super::{Descriptor, answer, process_id};
use crate::forbidden_calls::permitted_syscall;
use crate::mappings;

/// Address of the list of the mappings that this crate made.
pub fn own_mappings_avma() -> u64 {
    (&raw const mappings::MAPPINGS) as u64
}

/// Maps anonymous private memory, zeroed. `wipe_on_fork`: the memory reads as zero in a forked
/// child (`MADV_WIPEONFORK`, Linux 4.14).
///
/// # Errors
/// The kernel's error number, mostly ENOMEM.
pub fn map_anonymous(bytes: usize, wipe_on_fork: bool) -> Result<*mut u8, i32> {
    const MAP_PRIVATE_ANONYMOUS_NORESERVE: usize = 0x02 | 0x20 | 0x4000;
    const MADV_WIPEONFORK: usize = 18;
    const MADV_DONTDUMP: usize = 16;
    let memory = map(bytes, MAP_PRIVATE_ANONYMOUS_NORESERVE, usize::MAX)?;
    let address = memory as usize;
    if wipe_on_fork {
        // SAFETY: advice on the mapping just made.
        answer(unsafe { permitted_syscall(number::MADVISE, [address, bytes, MADV_WIPEONFORK, 0, 0, 0]) })?;
    }
    // SAFETY: as above. Core dumps of the target stay as small as without the agent; failure is
    // harmless.
    let _ = unsafe { permitted_syscall(number::MADVISE, [address, bytes, MADV_DONTDUMP, 0, 0, 0]) };
    Ok(memory)
}

/// Unmaps memory from [`map_anonymous`] or [`map_shared`].
///
/// # Safety
/// 1. `address..address + bytes` is a whole mapping of this crate's, and no references to it
///    remain.
pub unsafe fn unmap(address: *mut u8, bytes: usize) {
    mappings::forget(address as usize);
    // SAFETY: (1).
    let _ = unsafe { permitted_syscall(number::MUNMAP, [address as usize, bytes, 0, 0, 0, 0]) };
}

/// Returns pages to the kernel: they read as zero afterwards. If the kernel refuses, they stay.
///
/// # Safety
/// 1. `address..address + bytes` is whole pages of a mapping from [`map_anonymous`]. All accesses
///    to it are atomic, and its readers take zeros for the absence of content.
pub unsafe fn give_back(address: *mut u8, bytes: usize) {
    const MADV_DONTNEED: usize = 4;
    // SAFETY: (1).
    let _ = unsafe { permitted_syscall(number::MADVISE, [address as usize, bytes, MADV_DONTNEED, 0, 0, 0]) };
}

/// Drops pages of a shared mapping from this process's resident memory; the content stays in the
/// file.
pub(crate) fn take_out_of_sight(address: usize, bytes: usize) {
    const MADV_DONTNEED: usize = 4;
    // SAFETY: for a shared mapping the call drops only the page table entries; the content stays.
    let _ = unsafe { permitted_syscall(number::MADVISE, [address, bytes, MADV_DONTNEED, 0, 0, 0]) };
}

/// Maps `bytes` of a descriptor, shared, readable and writable.
///
/// # Errors
/// The kernel's error number.
pub(crate) fn map_shared(descriptor: &Descriptor, bytes: usize) -> Result<*mut u8, i32> {
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
    let address =
        answer(unsafe { permitted_syscall(number::MMAP, [0, bytes, 3, 1, descriptor.0 as usize, 0]) })?;
    mappings::note(address, bytes);
    Ok(address as *mut u8)
}

/// 1: the program has requested that future mappings be locked (`MCL_FUTURE`).
static LOCKS_MAPPINGS: AtomicU32 = AtomicU32::new(0);

/// Makes later mappings of this crate unlocked before they get memory, because the limit on locked
/// memory is the program's.
pub fn note_locking() {
    LOCKS_MAPPINGS.store(1, Relaxed);
}

/// Maps `bytes` of a descriptor like [`map_shared`], for a file of which only parts have memory.
/// The rest gets none, even if the program locks its mappings.
///
/// # Errors
/// The kernel's error number: EAGAIN and ENOMEM if there is no room.
pub(crate) fn map_shared_unlocked(descriptor: &Descriptor, bytes: usize) -> Result<*mut u8, i32> {
    map(bytes, MAP_SHARED, descriptor.0 as usize)
}

const PROT_READ_WRITE: usize = 3;
const MAP_SHARED: usize = 1;

/// Maps unlocked memory, readable and writable.
fn map(bytes: usize, flags: usize, descriptor: usize) -> Result<*mut u8, i32> {
    // The kernel fills a locked mapping at once, unless its protection forbids access.
    let is_locked = LOCKS_MAPPINGS.load(Relaxed) != 0;
    let protection = if is_locked { 0 } else { PROT_READ_WRITE };
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
    let address =
        answer(unsafe { permitted_syscall(number::MMAP, [0, bytes, protection, flags, descriptor, 0]) })?;
    if is_locked {
        // SAFETY: the mapping just made.
        let _ = unsafe { permitted_syscall(number::MUNLOCK, [address, bytes, 0, 0, 0, 0]) };
        // SAFETY: the same mapping, which is not in use yet.
        if let Err(errno) = unsafe { protect(address, bytes, PROT_READ_WRITE) } {
            // SAFETY: as above.
            let _ = unsafe { permitted_syscall(number::MUNMAP, [address, bytes, 0, 0, 0, 0]) };
            return Err(errno);
        }
    }
    mappings::note(address, bytes);
    Ok(address as *mut u8)
}

/// Changes the protection of whole pages.
///
/// # Errors
/// The kernel's error number.
///
/// # Safety
/// 1. The pages are mapped and the new protection breaks no use that is made of them.
pub unsafe fn protect(address: usize, bytes: usize, protection: usize) -> Result<(), i32> {
    // SAFETY: (1).
    answer(unsafe { permitted_syscall(number::MPROTECT, [address, bytes, protection, 0, 0, 0]) }).map(|_| ())
}

/// Locks mapped pages; with `on_fault` each page only when it becomes resident. Pages that cannot
/// be locked stay as they are.
pub fn lock(address: usize, bytes: usize, on_fault: bool) {
    // SAFETY: the call changes no contents.
    let _ = unsafe { permitted_syscall(number::MLOCK2, [address, bytes, usize::from(on_fault), 0, 0, 0]) };
}

/// Permission of a mapping, for [`query_mapping`]: read.
pub const MAPPING_READABLE: u64 = 1;
/// Permission of a mapping: write.
pub const MAPPING_WRITABLE: u64 = 2;
/// Permission of a mapping: execute.
pub const MAPPING_EXECUTABLE: u64 = 4;

/// Returns start and end of the mapping that holds `address` and has all `wanted` permissions
/// (`PROCMAP_QUERY` on an open /proc/self/maps, Linux 6.11).
///
/// # Errors
/// ENOTTY on older kernels; ENOENT if no such mapping exists.
pub fn query_mapping(maps: &Descriptor, address: usize, wanted: u64) -> Result<(usize, usize), i32> {
    // struct procmap_query is 13 words: size, flags, address; start, end and flags of the vma; page
    // size, offset, inode. The last four words are pairs of u32 or addresses: device, sizes of name
    // and build-id, their addresses.
    const PROCMAP_QUERY: usize = 0xC068_6611;
    let mut query = [0_u64; 13];
    query[0] = 104;
    query[1] = wanted;
    query[2] = address as u64;
    // SAFETY: the kernel reads and writes 104 bytes, the size of the array.
    answer(unsafe {
        permitted_syscall(
            number::IOCTL,
            [maps.0 as usize, PROCMAP_QUERY, query.as_mut_ptr() as usize, 0, 0, 0],
        )
    })?;
    Ok((query[3] as usize, query[4] as usize))
}

/// True if the eight bytes at an address can be read; needs no descriptor. The kernel copies a
/// signal set from the address before it refuses the invalid operation. `None`: unknown.
#[must_use]
pub fn is_readable(address: usize) -> Option<bool> {
    const NO_SUCH_CHANGE: usize = u32::MAX as usize;
    const EFAULT: i32 = 14;
    const EINVAL: i32 = 22;
    // SAFETY: the operation is invalid, so that the kernel changes nothing.
    match answer(unsafe { permitted_syscall(number::RT_SIGPROCMASK, [NO_SUCH_CHANGE, address, 0, 8, 0, 0]) })
    {
        Err(EFAULT) => Some(false),
        Err(EINVAL) => Some(true),
        _ => None,
    }
}

/// True if a range of whole pages is fully mapped. Also false if the program may not make the call
/// (`msync` with `MS_ASYNC`, which has no other effect).
#[must_use]
pub fn is_all_mapped(address: usize, bytes: usize) -> bool {
    const MS_ASYNC: usize = 1;
    // SAFETY: the call changes nothing.
    answer(unsafe { permitted_syscall(number::MSYNC, [address, bytes, MS_ASYNC, 0, 0, 0]) }).is_ok()
}

/// Copies memory of this process that may be unmapped: that is an error instead of a fault.
///
/// # Errors
/// The kernel's error number: EFAULT if not all of it can be read.
pub fn copy_own(address: usize, into: &mut [u8]) -> Result<(), i32> {
    const EFAULT: i32 = 14;
    let local = [into.as_mut_ptr() as usize, into.len()];
    let remote = [address, into.len()];
    let arguments = [process_id() as usize, local.as_ptr() as usize, 1, remote.as_ptr() as usize, 1, 0];
    // SAFETY: the kernel writes at most the buffer's length into it.
    let copied = answer(unsafe { permitted_syscall(number::PROCESS_VM_READV, arguments) })?;
    if copied == into.len() { Ok(()) } else { Err(EFAULT) }
}
