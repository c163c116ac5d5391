//! Which call of an allocator inside of the program is under way on a thread: what that calls in
//! turn is none of the program's.

use crate::record::thread::{self, Outermost, Scope};
use crate::x86_64::kept_entry::KeptCall;

/// With [`Outermost::function`] the address of a [`crate::hooks::kept::Kept`].
impl Outermost {
    pub(crate) const NONE: Self = Self { entry_sp: 0, function: 0 };

    /// Begins a call of a thread that is in no other of an allocator, nor in a hook. `false`: it
    /// may be; nothing was begun.
    #[inline(always)]
    pub(crate) fn begin_plainly(entry_sp: usize, function: usize) -> bool {
        let state = thread::current();
        if state.is_null() {
            return false;
        }
        // SAFETY: this thread's state, which is never unmapped; a signal handler leaves both fields
        // as they were.
        let state = unsafe { &mut *state };
        if state.is_in_hook() || state.outer_sp != 0 || state.outermost.entry_sp > entry_sp {
            return false;
        }
        state.outermost = Self { entry_sp, function };
        state.outer_sp = entry_sp;
        true
    }

    /// Ends a call that [`Self::begin_plainly`] has begun.
    #[inline(always)]
    pub(crate) fn end_plainly() {
        let state = thread::current();
        if !state.is_null() {
            // SAFETY: as there.
            let state = unsafe { &mut *state };
            state.outer_sp = 0;
            state.outermost = Self::NONE;
        }
    }

    /// Begins a call. `None`: it is an inner one, or not recorded. Otherwise what was under way
    /// before, for [`Outermost::end`].
    pub(crate) fn begin(entry_sp: usize, function: usize) -> Option<Self> {
        let mut scope = Scope::enter(entry_sp)?;
        if is_under_way(&mut scope, entry_sp) {
            return None;
        }
        let state = scope.state();
        let before = state.outermost;
        state.outermost = Self { entry_sp, function };
        // One that is left behind on another stack, or was left by longjmp, is nothing to come back
        // to.
        Some(if before.entry_sp > entry_sp { before } else { Self::NONE })
    }

    /// A call that somebody has jumped out of is no longer there: its word on the stack is
    /// another's.
    ///
    /// # Safety
    /// 1. The stack at its entry may be read.
    unsafe fn is_under_way(self) -> bool {
        // SAFETY: (1).
        let word = unsafe { *(self.entry_sp.wrapping_sub(KeptCall::FUNCTION_BELOW_ENTRY) as *const usize) };
        self.function != 0 && word == self.function
    }

    pub(crate) fn end(before: Self) {
        let state = thread::current();
        if !state.is_null() {
            // SAFETY: this thread's state, which is never unmapped.
            unsafe { (*state).outermost = before };
        }
    }
}

/// Returns true if an exception or longjmp has left a call of one of the functions that began at
/// `outer_sp`, on the stack of `sp`.
#[inline]
pub(crate) fn was_left(outer_sp: usize, sp: usize) -> bool {
    let state = thread::current();
    if state.is_null() {
        return false;
    }
    // SAFETY: this thread's state, which is never unmapped; a signal handler leaves what is read as
    // it was.
    let state = unsafe { &mut *state };
    let call = state.outermost;
    if call.entry_sp != outer_sp || call.function == 0 {
        return false;
    }
    let here = state.ranges.find(sp, state.is_main);
    // SAFETY: on the stack that the call is on, outwards of its stack pointer.
    here.contains(outer_sp) && !unsafe { call.is_under_way() }
}

/// Whether a call of one of the functions is under way around a stack pointer.
#[inline]
pub(crate) fn is_under_way(scope: &mut Scope, sp: usize) -> bool {
    let before = scope.state().outermost;
    is_around(scope, before, sp)
}

/// Whether a call is under way around a stack pointer.
#[inline]
pub(crate) fn is_around(scope: &mut Scope, call: Outermost, sp: usize) -> bool {
    if call.entry_sp <= sp {
        return false;
    }
    let state = scope.state();
    let here = state.ranges.find(sp, state.is_main);
    // SAFETY: on the stack that the call is on, outwards of its stack pointer.
    here.contains(call.entry_sp) && unsafe { call.is_under_way() }
}
