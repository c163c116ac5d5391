//! This process and the calling thread: ids, names, signals, clock, limits.

use heapr_wire::arch::call_numbers as number;

use super::{ESRCH, answer, open, read};
use crate::forbidden_calls::permitted_syscall;
use crate::pages::page_bytes;

/// Process id, in the process's own namespace; 0 if the program may not ask.
#[must_use]
pub fn process_id() -> u32 {
    // SAFETY: no arguments.
    answer(unsafe { permitted_syscall(number::GETPID, [0; 6]) }).map_or(0, |id| id as u32)
}

/// The parent's process id; 0 if the program may not ask.
#[must_use]
pub fn parent_process_id() -> u32 {
    // SAFETY: no arguments.
    answer(unsafe { permitted_syscall(number::GETPPID, [0; 6]) }).map_or(0, |id| id as u32)
}

/// True if a process exists, as far as this process can see.
#[must_use]
pub fn process_exists(process_id: u32) -> bool {
    // SAFETY: signal 0 only checks.
    let raw = unsafe { permitted_syscall(number::KILL, [process_id as usize, 0, 0, 0, 0, 0]) };
    answer(raw) != Err(ESRCH)
}

/// Id of the calling thread; 0 if the program may not ask.
#[must_use]
pub fn thread_id() -> u32 {
    // SAFETY: no arguments.
    answer(unsafe { permitted_syscall(number::GETTID, [0; 6]) }).map_or(0, |id| id as u32)
}

/// The calling thread's name (16 bytes, zero padded).
#[must_use]
pub fn thread_name() -> [u8; 16] {
    const PR_GET_NAME: usize = 16;
    let mut name = [0; 16];
    // SAFETY: the kernel writes 16 bytes.
    let _ =
        unsafe { permitted_syscall(number::PRCTL, [PR_GET_NAME, name.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    name
}

/// Scheduling policy of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// Ordinary policy (`SCHED_OTHER`).
    Ordinary = 0,
    /// Runs only while a processor would be idle (`SCHED_IDLE`).
    Last = 5,
}

/// Sets the scheduling policy of a thread of this process; 0 is the calling thread. Returning from
/// [`Precedence::Last`] to [`Precedence::Ordinary`] needs the permission to raise priorities.
///
/// # Errors
/// The kernel's error number. EPERM: no permission, or a thread with a real-time policy in some
/// containers. ESRCH: the thread has ended.
pub fn set_precedence(thread_id: u32, precedence: Precedence) -> Result<(), i32> {
    let parameters = [0_i32; 1];
    let arguments = [thread_id as usize, precedence as usize, parameters.as_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel reads one sched_param of one int.
    answer(unsafe { permitted_syscall(number::SCHED_SETSCHEDULER, arguments) }).map(|_| ())
}

/// Signals that a thread has blocked, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct SignalMask(u64);

/// Blocks all signals of the calling thread, and returns the mask before.
///
/// # Errors
/// The kernel's error number, if the program is not permitted to make the call.
pub fn block_signals() -> Result<SignalMask, i32> {
    change_signals(SignalMask(u64::MAX))
}

/// Sets the calling thread's blocked signals to exactly these.
pub fn set_signals(mask: SignalMask) {
    let _ = change_signals(mask);
}

fn change_signals(mask: SignalMask) -> Result<SignalMask, i32> {
    const SIG_SETMASK: usize = 2;
    let (mut before, new) = (SignalMask(0), mask);
    let [new_avma, before_avma] = [(&raw const new) as usize, (&raw mut before) as usize];
    // SAFETY: the kernel reads one mask of 8 bytes and writes the other.
    let raw = unsafe {
        permitted_syscall(
            number::RT_SIGPROCMASK,
            [SIG_SETMASK, new_avma, before_avma, size_of::<SignalMask>(), 0, 0],
        )
    };
    answer(raw).map(|_| before)
}

/// Lowest address and size of the calling thread's alternate signal stack, if one is set.
#[must_use]
pub fn alternate_stack() -> Option<(usize, usize)> {
    const SS_DISABLE: usize = 2;
    let mut stack = [0_usize; 3];
    // SAFETY: the kernel writes one stack_t: pointer, int (padded), size.
    let raw = unsafe { permitted_syscall(number::SIGALTSTACK, [0, stack.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    let [address, flags, bytes] = stack;
    (raw == 0 && flags & SS_DISABLE == 0 && bytes != 0).then_some((address, bytes))
}

/// `CLOCK_MONOTONIC` in nanoseconds, by a real system call; 0 if the program may not make it.
#[must_use]
#[cold]
#[inline(never)]
pub fn monotonic_ns() -> u64 {
    let mut time = [0_i64; 2];
    // SAFETY: the kernel writes one timespec of two i64.
    let _ = unsafe { permitted_syscall(number::CLOCK_GETTIME, [1, time.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    let [seconds, nanoseconds] = time;
    seconds.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(nanoseconds.cast_unsigned())
}

/// Soft limit of the stack's size in bytes (`RLIMIT_STACK`); `usize::MAX` if unlimited.
#[must_use]
pub fn stack_limit_bytes() -> usize {
    const RLIMIT_STACK: usize = 3;
    soft_limit(RLIMIT_STACK).unwrap_or(8 << 20)
}

/// Soft limit of locked memory in bytes (`RLIMIT_MEMLOCK`); `usize::MAX` if unlimited.
#[must_use]
pub fn lock_limit_bytes() -> usize {
    const RLIMIT_MEMLOCK: usize = 8;
    soft_limit(RLIMIT_MEMLOCK).unwrap_or(usize::MAX)
}

/// Bytes left below the limit of the address space (`RLIMIT_AS`); `None` without a limit.
#[must_use]
pub(crate) fn address_room_bytes() -> Option<usize> {
    const RLIMIT_AS: usize = 9;
    let limit = soft_limit(RLIMIT_AS).filter(|&limit| limit != usize::MAX)?;
    let file = open(b"/proc/self/statm\0", false).ok()?;
    let mut text = [0; 64];
    let count = read(&file, &mut text).ok()?;
    // The first number is the count of mapped pages.
    let digits = text.get(..count)?.iter().take_while(|byte| byte.is_ascii_digit());
    let pages =
        digits.fold(0_usize, |number, &digit| number.wrapping_mul(10).wrapping_add((digit & 15) as usize));
    Some(limit.saturating_sub(pages.wrapping_mul(page_bytes())))
}

fn soft_limit(resource: usize) -> Option<usize> {
    let mut limit = [0_u64; 2];
    // SAFETY: the kernel writes one rlimit of two words.
    let raw =
        unsafe { permitted_syscall(number::PRLIMIT64, [0, resource, 0, limit.as_mut_ptr() as usize, 0, 0]) };
    (raw == 0).then_some(limit[0] as usize)
}
