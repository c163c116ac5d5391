//! Transfer of a descriptor to the target without any path, so that it works in other mount,
//! network and process namespaces. The target creates a pair of sockets; the injector copies one of
//! them and sends the descriptor through it.
//!
//! If this process is killed meanwhile, the thread returns through the [`stub`], which closes all
//! open descriptors.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::arch::{PAIR_OFFSET, RECEIVED_OFFSET, stub};
use crate::error::{Error, Result};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::record::Record;
use crate::remote::Borrowed;

/// Size in bytes of a control message with one descriptor, without padding.
const CONTROL_BYTES: u64 = 20;

/// Copies the target's descriptor `number` (Linux 5.6; Linux 6.9 if its first thread has ended).
fn take_copy(pid: u32, number: i32) -> io::Result<OwnedFd> {
    /// Flag for a descriptor of a thread instead of a process.
    const PIDFD_THREAD: i32 = libc::O_EXCL;
    let thread = heapr_proc::telling_thread(pid);
    let flags = if thread == pid { 0 } else { PIDFD_THREAD };
    // SAFETY: plain numbers.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, thread, flags) };
    if process < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor, which has no other owner.
    let process = unsafe { OwnedFd::from_raw_fd(process as i32) };
    // SAFETY: plain numbers.
    let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(copy as i32) })
}

/// Sends one byte with a descriptor.
fn send(socket: &OwnedFd, descriptor: i32) -> io::Result<()> {
    let mut byte = [b'h'];
    let mut piece = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // A control message with one descriptor: length 20, level SOL_SOCKET, kind SCM_RIGHTS, the
    // number; 24 with padding.
    let mut control = [20_u64, (libc::SOL_SOCKET as u64) | (libc::SCM_RIGHTS as u64) << 32, 0];
    control[2] = u64::from(descriptor.cast_unsigned());
    // SAFETY: all bits zero is a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = 24;
    // SAFETY: the message and what it points to live until the call returns.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Transfers a descriptor to the target. Its number is left in the scratch memory for the stub,
/// which also closes the pair of sockets.
pub(crate) fn pass(
    pid: u32,
    memory: &ProcessMemory,
    thread: &mut Borrowed<'_>,
    record: &Record,
    descriptor: i32,
) -> Result<()> {
    let memory_error = |source| Error::Memory { pid, source };
    let scratch_avma = record.scratch_avma;
    // Three invalid descriptors.
    memory.write(scratch_avma + RECEIVED_OFFSET, &[0xff; 12]).map_err(memory_error)?;
    thread.tidy_by(record.stub_avma + stub::CLOSE, record.stub_avma + stub::RETURN, scratch_avma)?;
    let kind = (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC) as u64;
    let pair_avma = scratch_avma + PAIR_OFFSET;
    thread.call_system(
        "socketpair",
        libc::SYS_socketpair,
        [libc::AF_UNIX as u64, kind, 0, pair_avma, 0, 0],
    )?;
    let near = u64::from(memory.read_u32(pair_avma).map_err(memory_error)?);
    let far = memory.read_u32(pair_avma + 4).map_err(memory_error)?;
    let copy = take_copy(pid, far.cast_signed());
    let copy = copy.map_err(|source| Error::Trace { pid, call: "pidfd_getfd", source })?;
    send(&copy, descriptor).map_err(|source| Error::Trace { pid, call: "sendmsg", source })?;
    // struct msghdr at 64, iovec at 128, control at 160, the byte at 200. The pair lies behind the
    // control buffer, which has room for one descriptor.
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let header = [0, 0, scratch_avma + 128, 1, scratch_avma + 160, CONTROL_BYTES, 0];
    memory.write(scratch_avma + 64, &words(&header)).map_err(memory_error)?;
    memory.write(scratch_avma + 128, &words(&[scratch_avma + 200, 1])).map_err(memory_error)?;
    memory.write(scratch_avma + 160, &words(&[0, 0])).map_err(memory_error)?;
    let flags = (libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC) as u64;
    thread.call_system("recvmsg", libc::SYS_recvmsg, [near, scratch_avma + 64, flags, 0, 0, 0])?;
    let got = memory.read_u64(scratch_avma + 160).map_err(memory_error)?;
    if got != CONTROL_BYTES {
        // The process had no free descriptor number.
        return Err(Error::RemoteCall { pid, call: "receiving a descriptor", errno: libc::EMFILE });
    }
    Ok(())
}
