//! Files, and the file of the shared pages.

use heapr_wire::arch::call_numbers as number;

use super::{Descriptor, SysResult, answer};
use crate::forbidden_calls::permitted_syscall;

/// Opens a file. `path` must end with a zero byte.
///
/// # Errors
/// The kernel's error number; EINVAL if `path` has no zero byte.
pub fn open(path: &[u8], is_writable: bool) -> Result<Descriptor, i32> {
    const AT_FDCWD: usize = -100_isize as usize;
    const O_CLOEXEC: usize = 0o2_000_000;
    const O_RDWR: usize = 2;
    const EINVAL: i32 = 22;
    if !path.contains(&0) {
        return Err(EINVAL);
    }
    let flags = O_CLOEXEC | if is_writable { O_RDWR } else { 0 };
    // SAFETY: the path is zero-terminated, checked above.
    let raw =
        unsafe { permitted_syscall(number::OPENAT, [AT_FDCWD, path.as_ptr() as usize, flags, 0, 0, 0]) };
    answer(raw).map(|number| Descriptor(number as i32))
}

/// Reads a symbolic link's target into `buffer`, cut if the buffer is too small. `path` must end
/// with a zero byte.
///
/// # Errors
/// The kernel's error number; EINVAL if `path` has no zero byte.
pub fn read_link<'a>(path: &[u8], buffer: &'a mut [u8]) -> Result<&'a [u8], i32> {
    const AT_FDCWD: usize = -100_isize as usize;
    const EINVAL: i32 = 22;
    if !path.contains(&0) {
        return Err(EINVAL);
    }
    // SAFETY: the path is zero-terminated, checked above; the kernel writes at most the buffer's
    // length.
    let raw = unsafe {
        permitted_syscall(
            number::READLINKAT,
            [AT_FDCWD, path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0],
        )
    };
    let count = answer(raw)?;
    Ok(buffer.get(..count).unwrap_or_default())
}

/// Reads into `buffer`; 0 at the end of the file.
///
/// # Errors
/// The kernel's error number.
pub fn read(descriptor: &Descriptor, buffer: &mut [u8]) -> SysResult {
    // SAFETY: the kernel writes at most the buffer's length into it.
    answer(unsafe {
        permitted_syscall(
            number::READ,
            [descriptor.0 as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0],
        )
    })
}

/// Reads into `buffer` at an offset in the file; 0 behind its end.
///
/// # Errors
/// The kernel's error number.
pub fn read_at(descriptor: &Descriptor, buffer: &mut [u8], offset: usize) -> SysResult {
    // SAFETY: the kernel writes at most the buffer's length into it.
    answer(unsafe {
        permitted_syscall(
            number::PREAD64,
            [descriptor.0 as usize, buffer.as_mut_ptr() as usize, buffer.len(), offset, 0, 0],
        )
    })
}

/// Creates a memfd of `bytes` bytes, sealed against changes of its size (which would make accesses
/// fault).
///
/// # Errors
/// The kernel's error number.
pub(crate) fn memfd_sealed(bytes: usize) -> Result<Descriptor, i32> {
    const MFD_CLOEXEC_ALLOW_SEALING: usize = 1 | 2;
    const F_ADD_SEALS: usize = 1033;
    const SEAL_SEAL_SHRINK_GROW: usize = 1 | 2 | 4;
    let name = b"heapr-pool\0";
    // SAFETY: the name is zero-terminated.
    let raw = unsafe {
        permitted_syscall(
            number::MEMFD_CREATE,
            [name.as_ptr() as usize, MFD_CLOEXEC_ALLOW_SEALING, 0, 0, 0, 0],
        )
    };
    let descriptor = Descriptor(answer(raw)? as i32);
    // SAFETY: calls on a descriptor that this function owns.
    answer(unsafe { permitted_syscall(number::FTRUNCATE, [descriptor.0 as usize, bytes, 0, 0, 0, 0]) })?;
    // SAFETY: as above.
    answer(unsafe {
        permitted_syscall(number::FCNTL, [descriptor.0 as usize, F_ADD_SEALS, SEAL_SEAL_SHRINK_GROW, 0, 0, 0])
    })?;
    Ok(descriptor)
}

/// Allocates memory for a part of a file at once, instead of at its first write.
///
/// # Errors
/// The kernel's error number: `ENOMEM` or `ENOSPC` if memory is short.
pub fn allocate(descriptor: &Descriptor, offset: usize, bytes: usize) -> Result<(), i32> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: a call on a descriptor of this crate's.
    answer(unsafe { permitted_syscall(number::FALLOCATE, [descriptor.0 as usize, 0, offset, bytes, 0, 0]) })
        .map(|_| ())
}

/// The seals of a descriptor (`F_GET_SEALS`).
///
/// # Errors
/// The kernel's error number: EINVAL for a file that cannot be sealed.
pub fn seals(descriptor: &Descriptor) -> SysResult {
    const F_GET_SEALS: usize = 1034;
    // SAFETY: a call on a descriptor of this crate's.
    answer(unsafe { permitted_syscall(number::FCNTL, [descriptor.0 as usize, F_GET_SEALS, 0, 0, 0, 0]) })
}
