//! A separate stack of the agent for each thread, for work that takes long or needs much stack. The
//! program's stack may have almost no room left.
//!
//! ```text
//! program's stack:  ... | hook, capture | run                      at most 1 KiB of ours
//!                                          \
//! own stack:                                look up a rule, announce modules, ...
//!                                                                  \
//! program's stack:                                                  leave: wait for the recorder
//! ```
//!
//! Signals are blocked while the thread is on this stack. A handler would run on this stack, which
//! is small. Garbage collectors believe that the stack pointer that they see is on the thread's own
//! stack. And no handler can jump out of the agent's code here. A wait returns to the program's
//! stack for as long as it lasts, with the program's signals.
//!
//! If signals cannot be blocked (the program forbids itself the call), or there is no memory, the
//! work is done on the program's stack.

use core::mem::{MaybeUninit, offset_of};

use heapr_ring::sys::{self, SignalMask};

use crate::arch::stack_switch::{call_on, stack_pointer};
use crate::arch::thread_pointer;

/// Size of an own stack in bytes. The deepest path through the agent takes a quarter of it (heapr's
/// test `stack_use`).
pub(crate) const OWN_STACK_BYTES: usize = 32 << 10;

/// A thread's own stack; all zero before its first use. In a forked child it is zero, too.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct OwnStack {
    /// Lowest address; 0: the stack is not mapped yet.
    start: usize,
    /// The program's stack pointer while the own stack is in use; 0: not in use.
    program_sp: usize,
    /// Number of hooks that were in progress when the stack was entered.
    depth: usize,
    /// The program's signal mask; all signals are blocked while the stack is in use.
    mask: SignalMask,
}

/// First fields of a thread's state.
#[repr(C)]
struct Head {
    /// Number of hooks in progress.
    depth: u32,
    _is_ready: u32,
    _control_block: usize,
    own_stack: OwnStack,
}

/// Offset of [`Head::depth`] in a thread's state.
pub(crate) const DEPTH_OFFSET: usize = offset_of!(Head, depth);
/// Offset of [`Head::own_stack`] in a thread's state.
pub(crate) const OWN_STACK_OFFSET: usize = offset_of!(Head, own_stack);

/// Returns the first fields of the calling thread's state; null before its first event and after
/// its end.
fn head() -> *mut Head {
    thread_pointer::current().cast()
}

/// A call on another stack: first the function to be called, then its result.
struct Errand<F, T> {
    function: MaybeUninit<F>,
    answer: MaybeUninit<T>,
}

impl<F: FnOnce() -> T, T> Errand<F, T> {
    fn new(function: F) -> Self {
        Self { function: MaybeUninit::new(function), answer: MaybeUninit::uninit() }
    }

    /// Makes the call.
    ///
    /// # Safety
    /// 1. `errand` has not been carried out yet.
    unsafe extern "C" fn carry_out(errand: *mut ()) {
        // SAFETY: (1).
        let errand = unsafe { &mut *errand.cast::<Self>() };
        // SAFETY: (1): the function is read once.
        let function = unsafe { errand.function.assume_init_read() };
        errand.answer.write(function());
    }

    /// Makes the call on the stack that ends at `top`.
    ///
    /// # Safety
    /// 1. As for [`call_on`].
    unsafe fn on(mut self, top: usize) -> T {
        // SAFETY: (1); the errand was not carried out yet.
        unsafe { call_on(top, Self::carry_out, (&raw mut self).cast()) };
        // SAFETY: the errand has been carried out, which wrote the result.
        unsafe { self.answer.assume_init() }
    }
}

impl OwnStack {
    /// True if the thread is on its own stack, or has left it for a wait.
    fn is_in_use(&self, depth: usize) -> bool {
        // Hooks that have been jumped out of never return here.
        self.program_sp != 0 && self.depth <= depth
    }

    /// Returns the upper end of the stack, mapping it if necessary; `None` if there is no memory.
    fn top(&mut self) -> Option<usize> {
        if self.start == 0 {
            // Not wiped in a forked child: the child's thread may be in the middle of a wait.
            self.start = sys::map_anonymous(OWN_STACK_BYTES, false).ok()? as usize;
        }
        Some(self.start.wrapping_add(OWN_STACK_BYTES))
    }

    /// Marks the stack as unused, because its thread has ended, wherever it was. The next thread
    /// gets the stack.
    pub(crate) fn forget_use(&mut self) {
        self.program_sp = 0;
    }

    /// Marks the stack as unused if it was entered by a hook above `depth`: those hooks have been
    /// left by a jump.
    pub(crate) fn forget(&mut self, depth: usize) {
        if self.depth > depth {
            self.program_sp = 0;
        }
    }
}

/// Calls a function on the thread's own stack, unless the thread is on it already.
#[inline(never)]
pub(crate) fn run<T>(function: impl FnOnce() -> T) -> T {
    let state = head();
    let Some(top) = enter(state, stack_pointer()) else { return function() };
    // SAFETY: the thread's own stack, which it alone uses and only once at a time; no signal
    // handler can interrupt it.
    let answer = unsafe { Errand::new(function).on(top) };
    exit(state);
    answer
}

/// Blocks the thread's signals and returns the top of its own stack for use; `None` if the stack is
/// in use or cannot be had.
#[inline(never)]
fn enter(state: *mut Head, sp: usize) -> Option<usize> {
    // SAFETY: null, or this thread's state, which is never unmapped.
    let state = unsafe { state.as_mut() }?;
    let depth = state.depth as usize;
    if state.own_stack.is_in_use(depth) {
        return None;
    }
    let mask = sys::block_signals().ok()?;
    let Some(top) = state.own_stack.top() else {
        sys::set_signals(mask);
        return None;
    };
    state.own_stack.mask = mask;
    state.own_stack.depth = depth;
    state.own_stack.program_sp = sp;
    Some(top)
}

/// A thread's own stack, and the stack pointer at which the thread left the program's stack for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) program_sp: usize,
}

/// Returns the own stack and the program's stack pointer, if the own stack is in use and `sp` lies
/// on it.
pub(crate) fn left_at(sp: usize) -> Option<Left> {
    // SAFETY: null, or this thread's state, which is never unmapped.
    let own = unsafe { head().as_ref() }?.own_stack;
    let is_on_it = own.program_sp != 0 && sp.wrapping_sub(own.start) < OWN_STACK_BYTES;
    let end = own.start.wrapping_add(OWN_STACK_BYTES);
    is_on_it.then_some(Left { start: own.start, end, program_sp: own.program_sp })
}

/// Marks the own stack as unused and restores the program's signals, after the thread's return.
#[inline(never)]
fn exit(state: *mut Head) {
    // SAFETY: this thread's state, which is never unmapped.
    if let Some(state) = unsafe { state.as_mut() } {
        // (All zero in a child that a handler has forked in between, whose signals are as they
        // should be.)
        let was_in_use = core::mem::replace(&mut state.own_stack.program_sp, 0) != 0;
        if was_in_use {
            sys::set_signals(state.own_stack.mask);
        }
    }
}

/// Calls a function, which may wait, on the program's stack and with the program's signals.
#[inline(never)]
pub(crate) fn leave<T>(function: impl FnOnce() -> T) -> T {
    /// Bytes that the frames of [`run`] take below the stack pointer that it has noted.
    const BELOW: usize = 512;
    let state = head();
    // SAFETY: null, or this thread's state, which is never unmapped.
    let Some(own) = (unsafe { state.as_ref() }).map(|state| state.own_stack) else { return function() };
    let is_on_it = stack_pointer().wrapping_sub(own.start) < OWN_STACK_BYTES;
    if own.program_sp == 0 || own.start == 0 || !is_on_it {
        return function();
    }
    let program_top = own.program_sp.wrapping_sub(BELOW) & !15;
    sys::set_signals(own.mask);
    // SAFETY: the program's stack below the frames that wait here for the result.
    let answer = unsafe { Errand::new(function).on(program_top) };
    // (All zero in a child that a handler has forked in between: it has no own stack to return to.)
    // SAFETY: as above.
    if unsafe { state.as_ref() }.is_some_and(|state| state.own_stack.program_sp != 0) {
        let _ = sys::block_signals();
    }
    answer
}
