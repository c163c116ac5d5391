//! Single words of memory: waiting for a change, and access without a fault.

use core::sync::atomic::AtomicU32;

use heapr_wire::arch::call_numbers as number;

use super::{EAGAIN, EINTR, answer};
use crate::forbidden_calls::permitted_syscall;

/// Waits until `*word != expected`, a wake, or `timeout_ns`. Spurious returns are possible.
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout_ns: u64) {
    const FUTEX_WAIT: usize = 0;
    let timeout = [(timeout_ns / 1_000_000_000).cast_signed(), (timeout_ns % 1_000_000_000).cast_signed()];
    // SAFETY: the word is valid for as long as the reference; the time-out is a timespec of two
    // i64.
    let _ = unsafe {
        permitted_syscall(
            number::FUTEX,
            [word.as_ptr() as usize, FUTEX_WAIT, expected as usize, timeout.as_ptr() as usize, 0, 0],
        )
    };
}

/// Wakes up to `count` waiters on `word`, in any process.
pub fn futex_wake(word: &AtomicU32, count: u32) {
    const FUTEX_WAKE: usize = 1;
    // SAFETY: the kernel only uses the word's address as a key.
    let _ = unsafe {
        permitted_syscall(number::FUTEX, [word.as_ptr() as usize, FUTEX_WAKE, count as usize, 0, 0, 0])
    };
}

/// Result of comparing four bytes of this process with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The bytes equal the value.
    Equal,
    /// The bytes differ from the value.
    Differs,
    /// No memory is mapped at the address.
    Nothing,
    /// The kernel gave no answer.
    Unknown,
}

/// Compares the four bytes at an address of this process, which may be unmapped, with `value`. The
/// kernel reads them, so that no access faults.
#[must_use]
pub fn held_at(address: usize, value: u32) -> Held {
    const EFAULT: i32 = 14;
    const FUTEX_WAIT_PRIVATE: usize = 128;
    const NO_TIME: [i64; 2] = [0; 2];
    const ETIMEDOUT: i32 = 110;
    let arguments = [address, FUTEX_WAIT_PRIVATE, value as usize, NO_TIME.as_ptr() as usize, 0, 0];
    // SAFETY: the kernel compares the word and, if it is equal, waits for zero time.
    match answer(unsafe { permitted_syscall(number::FUTEX, arguments) }) {
        Ok(_) | Err(ETIMEDOUT | EINTR) => Held::Equal,
        Err(EAGAIN) => Held::Differs,
        Err(EFAULT) => Held::Nothing,
        Err(_) => Held::Unknown,
    }
}

/// Sets the four bytes at an address of this process to 0, and returns whether it succeeded. The
/// kernel writes them, so that an unmapped address does not fault.
///
/// # Safety
/// 1. If memory is mapped there, it is a word that may be set to 0.
pub unsafe fn clear(address: usize) -> bool {
    const FUTEX_WAKE_OP_PRIVATE: usize = 5 | 128;
    /// Operation that sets the word to 0. It also wakes one waiter if the word was -1; there are no
    /// waiters.
    const SET_TO_0: usize = 0xfff;
    static NOBODYS: AtomicU32 = AtomicU32::new(0);
    let arguments = [NOBODYS.as_ptr() as usize, FUTEX_WAKE_OP_PRIVATE, 0, 0, address, SET_TO_0];
    // SAFETY: (1).
    answer(unsafe { permitted_syscall(number::FUTEX, arguments) }).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{map_anonymous, unmap};

    #[test]
    fn words_are_asked_of_the_kernel() {
        let pages = map_anonymous(8192, false).unwrap();
        let address = pages as usize;
        // SAFETY: a fresh mapping.
        unsafe { pages.cast::<u32>().write(7) };
        assert_eq!((held_at(address, 7), held_at(address, 8)), (Held::Equal, Held::Differs));
        // SAFETY: as above.
        assert!(unsafe { clear(address) });
        assert_eq!(held_at(address, 0), Held::Equal);
        // SAFETY: the test owns the mapping.
        unsafe { unmap(pages, 8192) };
        assert_eq!(held_at(address, 0), Held::Nothing);
        // SAFETY: nothing is mapped there.
        assert!(!unsafe { clear(address) });
        assert_eq!(held_at(address + 1, 0), Held::Unknown);
    }
}
