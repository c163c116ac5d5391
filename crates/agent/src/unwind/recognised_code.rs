//! Frames whose caller is found by their code, because no table describes it (or a wrong one).

use super::call_frame::{UnwindTables, find_row};
use super::unwind_row::STEP_COLUMNS;
use crate::arch::{go_stacks, signal_return};

/// True if the frame that returns to the address after `lookup_avma` has a goroutine's frame as its
/// caller, on another stack.
pub(super) fn is_left_for_c(tables: &UnwindTables, lookup_avma: usize) -> bool {
    let code = tables.code_at::<{ go_stacks::CODE_BYTES }>(lookup_avma.wrapping_add(1));
    code.is_some_and(|code| go_stacks::comes_back(&code))
}

/// True if the frame that returns to the address after `lookup_avma` is a signal trampoline without
/// unwind information.
pub(super) fn is_signal_return(tables: &UnwindTables, lookup_avma: usize) -> bool {
    tables.code_at(lookup_avma.wrapping_add(1)) == Some(signal_return::CODE)
}

/// True if the frame at `lookup_avma`, which no table describes, returns to the first instruction
/// of a function. A context of makecontext returns to `__start_context` like this. Then no call
/// precedes the return address, and there is no caller. (glibc itself says so, by an undefined
/// return address, only in some versions.)
pub(super) fn is_entered_by_return(tables: &UnwindTables, lookup_avma: usize) -> bool {
    let return_avma = lookup_avma.wrapping_add(1);
    find_row::<STEP_COLUMNS>(tables, return_avma).is_some_and(|found| found.start_avma == return_avma)
}
