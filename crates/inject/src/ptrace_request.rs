//! The system call `ptrace`, with an error in place of an answer.

use std::io;

/// Type of a request's number in the C library that heapr is built with.
#[cfg(not(target_env = "musl"))]
pub(crate) type Request = libc::c_uint;
#[cfg(target_env = "musl")]
pub(crate) type Request = libc::c_int;

/// Makes a request whose answer is 0 or an error. `address` and `data` are numbers, or addresses of
/// buffers that live until the call returns.
pub(crate) fn request(number: Request, tid: u32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the address and data of these requests are numbers, or point to the callers' buffers.
    let answer = unsafe { libc::ptrace(number, tid.cast_signed(), address, data) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
