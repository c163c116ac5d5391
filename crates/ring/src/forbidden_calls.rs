//! System calls that the program has forbidden itself (seccomp), so that it would be ended for
//! them: they are not made.
//!
//! The agent is told when its program installs a filter, asks the filter about each of its own
//! calls, and notes here which would end the program. Each such call is answered with EPERM from
//! then on, as a milder filter might have: what fails is then counted as lost.

use core::sync::atomic::{AtomicU64, Ordering::*};

use crate::x86_64::{number, syscall6};

/// What a forbidden call is answered with.
const EPERM: isize = 1;
/// Words of [`FORBIDDEN`]: x86-64 has numbers up to some 470.
const WORDS: usize = 8;

/// A bit for each system call's number. Only ever set: filters are never taken away, and forked
/// children have them too.
static FORBIDDEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

fn place(number: usize) -> (Option<&'static AtomicU64>, u64) {
    (FORBIDDEN.get(number / 64), 1 << (number % 64))
}

/// From now on this call is not made.
pub fn forbid(number: u32) {
    if let (Some(word), bit) = place(number as usize) {
        word.fetch_or(bit, Relaxed);
    }
}

#[inline]
fn is_forbidden(number: usize) -> bool {
    let (word, bit) = place(number);
    word.is_some_and(|word| word.load(Relaxed) & bit != 0)
}

/// Whether the time of day can be asked for.
#[must_use]
pub fn has_clock() -> bool {
    !is_forbidden(number::CLOCK_GETTIME)
}

/// Whether a thread can wait for the recorder.
#[must_use]
pub fn may_wait() -> bool {
    !is_forbidden(number::FUTEX)
}

/// As [`syscall6`], unless the program would be ended for it.
///
/// # Safety
/// As there.
#[inline]
pub(crate) unsafe fn permitted_syscall(number: usize, arguments: [usize; 6]) -> isize {
    if is_forbidden(number) {
        return EPERM.wrapping_neg();
    }
    // SAFETY: the caller's.
    unsafe { syscall6(number, arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forbidden_is_not_called() {
        // Not one that other tests of this process need.
        assert_ne!(crate::sys::parent_process_id(), 0);
        forbid(number::GETPPID as u32);
        assert_eq!(crate::sys::parent_process_id(), 0);
        assert!(may_wait() && has_clock());
        forbid(u32::MAX);
        assert_ne!(crate::sys::process_id(), 0);
    }
}
