//! The call of an embedded allocator that is under way on a thread: calls that it makes in turn are
//! not the program's.

use crate::arch::trampoline_frame::function_of_call;
use crate::record::thread::{self, Outermost, Scope};

/// Methods for calls whose [`Outermost::function`] is the address of a
/// [`crate::hooks::all_registers::HookedFunction`].
impl Outermost {
    pub(crate) const NONE: Self = Self { entry_sp: 0, function: 0 };

    /// Fast path of [`Outermost::begin`]: begins a call of a thread that is in no other allocator
    /// call and in no hook. Returns `false`, without beginning one, if the thread may be.
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
            // SAFETY: as in `begin_plainly`.
            let state = unsafe { &mut *state };
            state.outer_sp = 0;
            state.outermost = Self::NONE;
        }
    }

    /// Begins a call. Returns the call that was under way before, for [`Outermost::end`]; `None` if
    /// this call is nested, or not recorded.
    pub(crate) fn begin(entry_sp: usize, function: usize) -> Option<Self> {
        let mut scope = Scope::enter(entry_sp)?;
        if is_under_way(&mut scope, entry_sp) {
            return None;
        }
        let state = scope.state();
        let before = state.outermost;
        state.outermost = Self { entry_sp, function };
        // A call that remains on another stack, or was left by longjmp, will not return.
        Some(if before.entry_sp > entry_sp { before } else { Self::NONE })
    }

    /// True if the call has not been left by longjmp or an exception. After that the slot below the
    /// call's entry no longer holds its function.
    ///
    /// # Safety
    /// 1. The stack at the call's entry may be read.
    unsafe fn is_under_way(self) -> bool {
        // SAFETY: (1).
        self.function != 0 && unsafe { function_of_call(self.entry_sp) } == self.function
    }

    pub(crate) fn end(before: Self) {
        let state = thread::current();
        if !state.is_null() {
            // SAFETY: this thread's state, which is never unmapped.
            unsafe { (*state).outermost = before };
        }
    }
}

/// True if an exception or longjmp has left a hooked function's call that began at `outer_sp`, on
/// the stack of `sp`.
#[inline]
pub(crate) fn was_left(outer_sp: usize, sp: usize) -> bool {
    let state = thread::current();
    if state.is_null() {
        return false;
    }
    // SAFETY: this thread's state, which is never unmapped; a signal handler restores all fields
    // that are read.
    let state = unsafe { &mut *state };
    let call = state.outermost;
    if call.entry_sp != outer_sp || call.function == 0 {
        return false;
    }
    let here = state.ranges.find(sp, state.is_main);
    // SAFETY: the word lies on the stack that the call is on, outwards of its stack pointer.
    here.contains(outer_sp) && !unsafe { call.is_under_way() }
}

/// True if a call of a hooked function is under way whose frame encloses the stack pointer `sp`.
#[inline]
pub(crate) fn is_under_way(scope: &mut Scope, sp: usize) -> bool {
    let before = scope.state().outermost;
    is_around(scope, before, sp)
}

/// True if `call` is under way and its frame encloses the stack pointer `sp`.
#[inline]
pub(crate) fn is_around(scope: &mut Scope, call: Outermost, sp: usize) -> bool {
    if call.entry_sp <= sp {
        return false;
    }
    let state = scope.state();
    let here = state.ranges.find(sp, state.is_main);
    // SAFETY: the word lies on the stack that the call is on, outwards of its stack pointer.
    here.contains(call.entry_sp) && unsafe { call.is_under_way() }
}
