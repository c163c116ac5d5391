//! The full unwind: for rules that need all registers, and to check the verified stacks.

use crate::stack::{Frame, Start};

/// Compares a captured stack with a full unwind and counts the result.
pub(crate) fn compare(_frames: &[Frame], _start: Start) {}

/// Unwinds from here with all registers until the frame (pc, sp), and one frame further: (pc, sp, bp) of its caller.
pub(crate) fn slow_step(_pc: usize, _sp: usize) -> Option<(usize, usize, usize)> {
    None
}
