//! Decides whether a call was made by an embedded allocator, whose calls are counted down before
//! the agent can check them.
//!
//! ```text
//! program     --rjem_calloc--> counted --> rjem_calloc
//! rjem_calloc --rjem_malloc--> counted --> rjem_malloc
//! rjem_malloc --malloc-------> counted --> ...
//! ```
//! The countdown may end with any of the three calls, and only the first is the program's. The
//! others are recognised by the code that their stack leads through. That is checked only for
//! samples, and a rejected one is drawn anew. The rest of an exponential distance is distributed as
//! the whole, so the program's calls are sampled as if the others did not exist.

use core::sync::atomic::Ordering::Relaxed;

use crate::hooks::inner_table::{self, FUNCTIONS};
use crate::hooks::{Caller, outermost};
use crate::record::thread::Scope;
use crate::stack;

/// Largest number of an allocator's frames between the program and a nested call; beyond it the
/// call counts as the program's.
const FRAMES_MAX: usize = 32;

/// True if the stack leads through a hooked function.
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

/// True if a return address lies in a hooked function.
fn is_in_function(pc: usize) -> bool {
    FUNCTIONS.iter().any(|function| {
        // The call may have been the function's last instruction.
        let from_start = pc.wrapping_sub(1).wrapping_sub(function.code.load(Relaxed));
        from_start < function.code_bytes.load(Relaxed)
    })
}
