//! System calls that the program has forbidden itself (seccomp) and that would end it. The agent
//! does not make them.
//!
//! When its program installs a filter, the agent checks each of its own calls and marks here those
//! that would end the program. A marked call returns EPERM, as with a milder filter; its failure is
//! counted as a loss.

use core::sync::atomic::{AtomicU64, Ordering::*};

use heapr_wire::arch::call_numbers as number;

use crate::arch::syscall6;

/// Error number that a forbidden call returns.
const EPERM: isize = 1;
/// Length of [`FORBIDDEN`] in words: the kernel has numbers up to some 470.
const WORDS: usize = 8;

/// Bitmap of forbidden system call numbers. Bits are only ever set: filters are never removed, and
/// forked children inherit them.
static FORBIDDEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

fn place(number: u32) -> (Option<&'static AtomicU64>, u64) {
    (FORBIDDEN.get(number as usize / 64), 1 << (number % 64))
}

/// Marks a system call as forbidden for the rest of the process's life.
pub fn forbid(number: u32) {
    if let (Some(word), bit) = place(number) {
        word.fetch_or(bit, Relaxed);
    }
}

#[inline]
fn is_forbidden(number: u32) -> bool {
    let (word, bit) = place(number);
    word.is_some_and(|word| word.load(Relaxed) & bit != 0)
}

/// True if the process may read the time.
#[must_use]
pub fn has_clock() -> bool {
    !is_forbidden(number::CLOCK_GETTIME)
}

/// True if a thread may wait for the recorder (futex).
#[must_use]
pub fn may_wait() -> bool {
    !is_forbidden(number::FUTEX)
}

/// Makes a system call like [`syscall6`], unless it is forbidden: then it returns EPERM.
///
/// # Safety
/// The requirements of [`syscall6`] apply.
#[inline]
pub(crate) unsafe fn permitted_syscall(number: u32, arguments: [usize; 6]) -> isize {
    if is_forbidden(number) {
        return EPERM.wrapping_neg();
    }
    // SAFETY: the caller's.
    unsafe { syscall6(number as usize, arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forbidden_is_not_called() {
        // A call that the other tests of this process do not need.
        assert_ne!(crate::sys::parent_process_id(), 0);
        forbid(number::GETPPID);
        assert_eq!(crate::sys::parent_process_id(), 0);
        assert!(may_wait() && has_clock());
        forbid(u32::MAX);
        assert_ne!(crate::sys::process_id(), 0);
    }
}
