//! Whether a call was made by an allocator that lies inside of the program, where its calls are
//! counted before anybody asks.
//!
//! ```text
//! program --rjem_calloc--> counted --> rjem_calloc --rjem_malloc--> counted --> rjem_malloc --malloc--> counted --> ...
//! ```
//! All three may be the one with which a countdown ends, and only the first is the program's. The
//! others are told by the code that their stack leads through. That is asked of samples alone, and
//! what is none is drawn anew: what is left of an exponential distance is distributed as the whole,
//! so that the program's calls are sampled as if the others were not there.

use core::sync::atomic::Ordering::Relaxed;

use crate::hooks::inner_table::{self, FUNCTIONS};
use crate::hooks::{Caller, outermost};
use crate::record::thread::Scope;
use crate::stack;

/// Frames of an allocator that lie between the program and one of its inner calls at most; of
/// more, the call counts as the program's.
const FRAMES_MAX: usize = 32;

/// Whether the stack leads through a hooked function.
#[cold]
pub(crate) fn is_made_inside(scope: &mut Scope, caller: Caller) -> bool {
    if !inner_table::is_any_known() {
        return false;
    }
    if outermost::is_under_way(scope, caller.sp()) {
        return true;
    }
    let start = caller.start();
    let node = stack::capture(scope, start);
    stack::settle(scope, start, node);
    let kept = &scope.level().kept;
    (1..=FRAMES_MAX).any(|from_top| {
        kept.depth.checked_sub(from_top).is_some_and(|index| {
            // SAFETY: below the depth.
            is_in_function(unsafe { kept.frame(index) }.pc)
        })
    })
}

/// Whether a return address lies in one.
fn is_in_function(pc: usize) -> bool {
    FUNCTIONS.iter().any(|function| {
        // The call may have been its last instruction.
        let from_start = pc.wrapping_sub(1).wrapping_sub(function.code.load(Relaxed));
        from_start < function.code_bytes.load(Relaxed)
    })
}
