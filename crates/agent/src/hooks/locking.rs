//! `mlockall` locks the program's memory, but not the agent's.
//!
//! The kernel refuses to lock more than a limit, and gives memory to all that is locked. The shared
//! buffers alone are larger than the usual limit, and most of them never get any memory. So the
//! mappings are locked one by one, except the agent's.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use heapr_ring::{mappings, sys};

use crate::arch::ADDRESS_END;
use crate::hooks::real::REAL;
use crate::process::own_files::{for_each_line, hexadecimal};
use crate::state::AGENT;

const CURRENT: c_int = 1;
const FUTURE: c_int = 2;
const ON_FAULT: c_int = 4;

/// The C function of this name.
///
/// # Safety
/// As the C library documents it.
#[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    let is_known = flags & !(CURRENT | FUTURE | ON_FAULT) == 0;
    if !AGENT.is_active() || !is_known || flags & (CURRENT | FUTURE) == 0 {
        return REAL.mlockall(flags);
    }
    let facts = Facts::read();
    // A seccomp filter may kill the program for system calls that it does not make itself.
    if facts.has_filters {
        return REAL.mlockall(flags);
    }
    if flags & FUTURE != 0 {
        sys::note_locking();
    }
    // A call that the kernel would refuse without the agent is refused with it, too.
    if flags & CURRENT == 0 || !facts.may_lock_all && !is_within_limit() {
        return REAL.mlockall(flags);
    }
    if flags & FUTURE != 0 {
        let answer = REAL.mlockall(flags & !CURRENT);
        if answer != 0 {
            return answer;
        }
    }
    for_each_mapping(&mut |start, end| sys::lock(start, end.wrapping_sub(start), flags & ON_FAULT != 0));
    0
}

/// True if all memory of the program's own may be locked.
fn is_within_limit() -> bool {
    let limit = sys::lock_limit_bytes();
    let mut bytes = 0_usize;
    for_each_mapping(&mut |start, end| bytes = bytes.wrapping_add(end.wrapping_sub(start)));
    limit != 0 && bytes <= limit
}

/// State of this process according to /proc.
#[derive(Default)]
struct Facts {
    /// Whether no limit of locked memory applies (`CAP_IPC_LOCK`).
    may_lock_all: bool,
    has_locked: bool,
    /// Whether seccomp filters are installed.
    has_filters: bool,
}

impl Facts {
    fn read() -> Self {
        const CAP_IPC_LOCK: u32 = 14;
        let mut facts = Self::default();
        let is_above_zero = |amount: &[u8]| amount.iter().any(|digit| (b'1'..=b'9').contains(digit));
        for_each_line(b"/proc/self/status\0", &mut |line| {
            if let Some(digits) = line.strip_prefix(b"CapEff:") {
                facts.may_lock_all = hexadecimal(digits.trim_ascii()).0 >> CAP_IPC_LOCK & 1 != 0;
            } else if let Some(amount) = line.strip_prefix(b"VmLck:") {
                facts.has_locked = is_above_zero(amount);
            } else if let Some(mode) = line.strip_prefix(b"Seccomp:") {
                facts.has_filters = is_above_zero(mode);
            }
        });
        facts
    }
}

/// Prepares an agent that is injected: the program may already have locked all future mappings.
pub(crate) fn look_for_locking() {
    let facts = Facts::read();
    if facts.has_locked && !facts.has_filters {
        sys::note_locking();
    }
}

/// Calls `visit` with start and end of each mapping that is not the agent's.
fn for_each_mapping(visit: &mut dyn FnMut(usize, usize)) {
    for_each_line(b"/proc/self/maps\0", &mut |line| {
        let (start, digits) = hexadecimal(line);
        let rest = line.get(digits.wrapping_add(1)..).unwrap_or_default();
        let (end, _) = hexadecimal(rest);
        // The kernel's own page at the end of the address space is not accounted.
        let is_of_kernel = start >= ADDRESS_END;
        if end > start && !is_of_kernel && !is_agents(start) {
            visit(start, end);
        }
    });
}

fn is_agents(address: usize) -> bool {
    mappings::MAPPINGS.iter().any(|[start, bytes]| {
        let start = start.load(Relaxed);
        start != 0 && address.wrapping_sub(start) < bytes.load(Relaxed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mappings_are_those_that_the_kernel_lists() {
        let own = the_mappings_are_those_that_the_kernel_lists as *const () as usize;
        let mut has_own = false;
        for_each_mapping(&mut |start, end| has_own |= (start..end).contains(&own));
        assert!(has_own);
    }
}
