//! The system call `ptrace`, with an error in place of an answer.

use std::io;

/// Type of a request's number in the C library that heapr is built with.
#[cfg(not(target_env = "musl"))]
pub(crate) type Request = libc::c_uint;
#[cfg(target_env = "musl")]
pub(crate) type Request = libc::c_int;

/// Makes a request whose answer is 0 or an error. `address` and `data` are numbers, or addresses of
/// buffers that live until the call returns. The C library's function is not used: it returns a
/// word that is read, and leaves the buffer of `data` as it is.
pub(crate) fn request(number: Request, tid: u32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the address and data of these requests are numbers, or point to the callers' buffers.
    let answer = unsafe { libc::syscall(libc::SYS_ptrace, number as usize, tid as usize, address, data) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use heapr_testkit::wait_until;

    use super::*;
    use crate::memory::{ProcessMemory, TargetMemory as _};
    use crate::stop::{DETACH_STOP_LIMIT, Stopped};

    #[test]
    fn a_word_that_is_read_is_in_the_buffer() {
        let mut child = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        let (word, expected) = wait_until("it stands still", || {
            crate::own_thread::in_own_thread(|| {
                let memory = ProcessMemory::open(pid).unwrap();
                let stopped = Stopped::stop(pid, None, DETACH_STOP_LIMIT).unwrap().ok()?;
                let place_avma = stopped.threads.first()?.registers.pc() & !7;
                let mut word = 0_u64;
                request(libc::PTRACE_PEEKDATA, pid, place_avma as usize, &raw mut word as usize).unwrap();
                Some((word, memory.read_u64(place_avma).unwrap()))
            })
        });
        let _ = child.kill();
        let _ = child.wait();
        assert_eq!(word, expected);
    }
}
