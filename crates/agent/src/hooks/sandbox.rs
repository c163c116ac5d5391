//! What the program forbids itself: system calls (seccomp), the time stamp counter (`PR_SET_TSC`).
//! It must not be ended for what the agent does.
//!
//! ```text
//! a filter --each call of the agent is asked about--> those that would end the program are not made any more
//! strict mode, or no time stamp counter ------------> recording ends
//! ```
//!
//! All of it passes on to children. An image that could not even start the agent is told not to.
//!
//! Filters come by `prctl` or, as libseccomp does it, by `syscall`. One that is installed without
//! the C library is not seen.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use heapr_ring::{forbidden_calls, sys};
use heapr_wire::DisableReason;
use heapr_wire::seccomp::{AGENT_CALLS, Call, Instruction};

use crate::hooks::real::{self, REAL};
use crate::state::AGENT;

/// The next image of this process or its children would be ended for what the agent does when it
/// starts.
static FORBIDS_START: AtomicBool = AtomicBool::new(false);

/// Whether an image that this process or its children go on to must not start the agent.
pub(crate) fn forbids_start() -> bool {
    FORBIDS_START.load(Relaxed)
}

const PR_SET_SECCOMP: usize = 22;
const PR_SET_TSC: usize = 26;
const PR_TSC_SIGSEGV: usize = 2;
/// `seccomp`'s and `prctl`'s system calls.
pub(crate) const SYS_SECCOMP: usize = 317;
pub(crate) const SYS_PRCTL: usize = 157;

/// What a program forbids itself with a call, if the call succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Nothing,
    /// All calls that the filter at this address does not allow: a `struct sock_fprog`.
    Filter(usize),
    /// All calls but four, or the time stamp counter.
    Everything,
}

impl Wish {
    fn of_prctl(option: usize, value: usize, filter: usize) -> Self {
        const STRICT: usize = 1;
        const FILTER: usize = 2;
        // The kernel takes an int.
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

    /// Makes the call and acts on the wish if it was granted: then the kernel has read and checked
    /// the filter.
    fn carry_out(self, call: impl FnOnce() -> isize) -> isize {
        // A vfork child has its parent's memory, and what it forbids is not forbidden to the
        // parent.
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

/// Notes which of the agent's calls a filter would end the program for.
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
        // SAFETY: as above, for so many instructions. Should another thread change them meanwhile,
        // any bits are an instruction.
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

/// `seccomp` or `prctl`, called by its number.
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
