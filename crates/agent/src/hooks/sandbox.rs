//! Restrictions that the program puts on itself: system calls (seccomp), the time stamp counter
//! (`PR_SET_TSC`). The agent's actions must not get the program killed.
//!
//! ```text
//! a filter                              --> each call of the agent is checked against it;
//!                                           one that would end the program is not made
//! strict mode, or no time stamp counter --> recording ends
//! ```
//!
//! All restrictions are inherited by children. An image that could not even start the agent is
//! executed without it.
//!
//! Filters are installed by `prctl` or, as in libseccomp, by `syscall`. A filter that is installed
//! without the C library is not seen.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use heapr_ring::{forbidden_calls, sys};
use heapr_wire::DisableReason;
use heapr_wire::arch::call_numbers;
use heapr_wire::seccomp::{AGENT_CALLS, Call, Instruction};

use crate::hooks::real::{self, REAL};
use crate::state::AGENT;

/// Whether the next image of this process or its children would be killed for what the agent does
/// when it starts.
static FORBIDS_START: AtomicBool = AtomicBool::new(false);

/// True if an image that this process or its children exec must not start the agent.
pub(crate) fn forbids_start() -> bool {
    FORBIDS_START.load(Relaxed)
}

const PR_SET_SECCOMP: usize = 22;
const PR_SET_TSC: usize = 26;
const PR_TSC_SIGSEGV: usize = 2;
/// System call numbers of `seccomp` and `prctl`.
pub(crate) const SYS_SECCOMP: usize = call_numbers::SECCOMP as usize;
pub(crate) const SYS_PRCTL: usize = call_numbers::PRCTL as usize;

/// Restriction that a call requests, which applies if the call succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Nothing,
    /// All system calls that the filter at this address (a `struct sock_fprog`) does not allow.
    Filter(usize),
    /// All system calls except four, or the time stamp counter.
    Everything,
}

impl Wish {
    fn of_prctl(option: usize, value: usize, filter: usize) -> Self {
        const STRICT: usize = 1;
        const FILTER: usize = 2;
        // The kernel reads an int.
        match (option as u32 as usize, value) {
            (PR_SET_SECCOMP, STRICT) | (PR_SET_TSC, PR_TSC_SIGSEGV) => Self::Everything,
            (PR_SET_SECCOMP, FILTER) => Self::Filter(filter),
            _ => Self::Nothing,
        }
    }

    fn of_seccomp(operation: usize, filter: usize) -> Self {
        match operation as u32 {
            0 => Self::Everything,
            1 => Self::Filter(filter),
            _ => Self::Nothing,
        }
    }

    /// Makes the call and applies the restriction if it succeeded: then the kernel has read and
    /// checked the filter.
    fn carry_out(self, call: impl FnOnce() -> isize) -> isize {
        // A vfork child has its parent's memory, and its restrictions do not apply to the parent.
        let is_own = self == Self::Nothing || !is_vfork_child();
        let answer = call();
        if answer >= 0 && is_own {
            match self {
                Self::Nothing => {}
                Self::Filter(filter) => obey(filter),
                Self::Everything => give_up(),
            }
        }
        answer
    }
}

fn is_vfork_child() -> bool {
    let known = AGENT.fork_local().map_or(0, |local| local.process_id.load(Relaxed));
    let own = sys::process_id();
    known != 0 && own != 0 && known != own
}

#[cold]
fn give_up() {
    FORBIDS_START.store(true, Relaxed);
    AGENT.end(DisableReason::Forbidden);
}

/// Notes the agent's system calls for which a filter would end the program.
#[cold]
fn obey(filter: usize) {
    /// `struct sock_fprog`.
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Program {
        count: u16,
        instructions: *const Instruction,
    }
    // SAFETY: the kernel has just read it from there, at any alignment.
    let Program { count, instructions } = unsafe { (filter as *const Program).read_unaligned() };
    let instruction = |number: usize| {
        // SAFETY: as above, for `count` instructions. If another thread changes them in the
        // meantime, any bits are a valid instruction.
        (number < usize::from(count)).then(|| unsafe { instructions.add(number).read_unaligned() })
    };
    for call in AGENT_CALLS {
        if call.would_be_ended_by(instruction) {
            forbid(call);
        }
    }
    if !forbidden_calls::has_clock() && AGENT.clock.is_asked_of_kernel() {
        AGENT.end(DisableReason::Forbidden);
    }
}

fn forbid(call: &Call) {
    FORBIDS_START.store(true, Relaxed);
    if !call.is_of_start {
        forbidden_calls::forbid(call.number);
    }
}

/// The C function of this name.
///
/// # Safety
/// As the C library documents it.
#[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn prctl(
    option: c_int,
    value: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
) -> c_int {
    let option_word = option.cast_unsigned() as usize;
    let wish = Wish::of_prctl(option_word, value, third);
    wish.carry_out(|| REAL.prctl(option, value, third, fourth, fifth) as isize) as c_int
}

/// Makes a call of `seccomp` or `prctl` by its number, and applies the restriction.
pub(crate) fn call_by_number(number: usize, arguments: [usize; 5]) -> isize {
    let [first, second, third, ..] = arguments;
    let wish = match number {
        SYS_SECCOMP => Wish::of_seccomp(first, third),
        _ => Wish::of_prctl(first, second, third),
    };
    wish.carry_out(|| real::syscall(number, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_forbids_something_is_a_wish() {
        assert_eq!(Wish::of_prctl(PR_SET_SECCOMP, 2, 77), Wish::Filter(77));
        assert_eq!(Wish::of_prctl(PR_SET_SECCOMP | 1 << 32, 2, 77), Wish::Filter(77));
        assert_eq!(Wish::of_prctl(PR_SET_SECCOMP, 1, 0), Wish::Everything);
        assert_eq!(Wish::of_prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0), Wish::Everything);
        assert_eq!(Wish::of_prctl(PR_SET_TSC, 1, 0), Wish::Nothing);
        assert_eq!(Wish::of_prctl(15, 2, 77), Wish::Nothing);
        assert_eq!(Wish::of_seccomp(0, 0), Wish::Everything);
        assert_eq!(Wish::of_seccomp(1, 77), Wish::Filter(77));
        assert_eq!(Wish::of_seccomp(2, 77), Wish::Nothing);
    }
}
