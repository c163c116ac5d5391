//! The C function `syscall`, with which programs make system calls for which they have, or want, no
//! function. Calls that forbid the program something, or exec, are handled like the functions of
//! their own.

use core::ffi::{c_char, c_int};

use heapr_wire::arch::call_numbers;

use crate::arch::mapping_entries::syscall_entry;
use crate::hooks::real::SYSCALL;
use crate::hooks::sandbox::{self, SYS_PRCTL, SYS_SECCOMP};
use crate::hooks::{exec, start_for_call};

const SYS_EXECVE: usize = call_numbers::EXECVE as usize;
const SYS_EXECVEAT: usize = call_numbers::EXECVEAT as usize;

/// Numbers of the calls that the C function `syscall` passes to [`checked_syscall`].
pub(crate) const CHECKED_CALLS: [usize; 4] = [SYS_SECCOMP, SYS_PRCTL, SYS_EXECVE, SYS_EXECVEAT];

syscall_entry! { SYSCALL, CHECKED_CALLS, checked_syscall, start_for_call }

/// The C function `syscall` for [`CHECKED_CALLS`], which have at most five arguments.
pub(crate) unsafe extern "C" fn checked_syscall(
    number: usize,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
) -> isize {
    // SAFETY: the caller means the system call, which has the same arguments as the C function.
    let answer = unsafe {
        match number {
            SYS_EXECVE => exec::execve(first as *const c_char, second as *const _, third as *const _),
            SYS_EXECVEAT => exec::execveat(
                first as c_int,
                second as *const c_char,
                third as *const _,
                fourth as *const _,
                fifth as c_int,
            ),
            _ => return sandbox::call_by_number(number, [first, second, third, fourth, fifth]),
        }
    };
    answer as isize
}
