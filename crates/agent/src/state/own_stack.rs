//! A stack of the agent's own for each thread, for what takes long and much: the program's stack
//! may have next to no room left.
//!
//! ```text
//! program's stack:  ... | hook, capture | run                      at most 1 KiB of ours
//!                                          \
//! own stack:                                look up a rule, announce modules, ...
//!                                                                  \
//! program's stack:                                                  leave: wait for the recorder
//! ```
//!
//! No signal is delivered to the thread meanwhile. A handler would run on this stack, which is
//! small; collectors of garbage take the stack pointer that they see for the thread's own; and
//! nobody can jump out of here. Who waits goes back to the program's stack for as long, with the
//! program's signals.
//!
//! Where signals cannot be blocked (the program forbids itself the call), or there is no memory,
//! the work is done on the program's stack.

use core::mem::{MaybeUninit, offset_of};

use heapr_ring::sys::{self, SignalMask};

use crate::x86_64::stack_switch::{call_on, stack_pointer};
use crate::x86_64::thread_pointer;

/// Bytes of an own stack. The deepest way through the agent takes a quarter of it (heapr's test
/// `stack_use`).
pub(crate) const OWN_STACK_BYTES: usize = 32 << 10;

/// A thread's own stack; all zero before its first use, and in a forked child.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct OwnStack {
    /// Where it begins; 0: there is none yet.
    start: usize,
    /// The program's stack pointer while it is in use; 0: it is not.
    program_sp: usize,
    /// Hooks that were in progress then.
    depth: usize,
    /// The program's signals, which are blocked meanwhile.
    mask: SignalMask,
}

/// How what a thread keeps begins.
#[repr(C)]
struct Head {
    /// Hooks in progress.
    depth: u32,
    _is_ready: u32,
    _control_block: usize,
    own_stack: OwnStack,
}

/// Where a thread's state has these.
pub(crate) const DEPTH_OFFSET: usize = offset_of!(Head, depth);
/// See [`DEPTH_OFFSET`].
pub(crate) const OWN_STACK_OFFSET: usize = offset_of!(Head, own_stack);

/// The calling thread's; null before its first event and after its end.
fn head() -> *mut Head {
    thread_pointer::current().cast()
}

/// A call on another stack: what is to be called, then its answer.
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
    /// 1. `errand` is one that was not carried out yet.
    unsafe extern "C" fn carry_out(errand: *mut ()) {
        // SAFETY: (1).
        let errand = unsafe { &mut *errand.cast::<Self>() };
        // SAFETY: (1): it is taken once.
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
        // SAFETY: it is carried out by now.
        unsafe { self.answer.assume_init() }
    }
}

impl OwnStack {
    /// Whether the thread is on it, or has left it for a wait.
    fn is_in_use(&self, depth: usize) -> bool {
        // Of hooks that are gone nobody comes back.
        self.program_sp != 0 && self.depth <= depth
    }

    /// Its upper end, having made it. `None`: there is no memory.
    fn top(&mut self) -> Option<usize> {
        if self.start == 0 {
            // Not wiped in a forked child: its thread may be in the middle of a wait.
            self.start = sys::map_anonymous(OWN_STACK_BYTES, false).ok()? as usize;
        }
        Some(self.start.wrapping_add(OWN_STACK_BYTES))
    }

    /// Its thread has ended, wherever it was: the stack is the next one's.
    pub(crate) fn forget_use(&mut self) {
        self.program_sp = 0;
    }

    /// The hooks of this level and those within it are gone.
    pub(crate) fn forget(&mut self, depth: usize) {
        if self.depth > depth {
            self.program_sp = 0;
        }
    }
}

/// Calls a function on the thread's own stack, unless it is on it already.
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

/// The top of the thread's own stack, which it may use from now on, with its signals blocked.
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

/// The thread's own stack, and where the program's was left for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) program_sp: usize,
}

/// What was left for the own stack, if that is in use and `sp` lies on it.
pub(crate) fn left_at(sp: usize) -> Option<Left> {
    // SAFETY: null, or this thread's state, which is never unmapped.
    let own = unsafe { head().as_ref() }?.own_stack;
    let is_on_it = own.program_sp != 0 && sp.wrapping_sub(own.start) < OWN_STACK_BYTES;
    let end = own.start.wrapping_add(OWN_STACK_BYTES);
    is_on_it.then_some(Left { start: own.start, end, program_sp: own.program_sp })
}

/// The thread has come back.
#[inline(never)]
fn exit(state: *mut Head) {
    // SAFETY: this thread's state, which is never unmapped.
    if let Some(state) = unsafe { state.as_mut() } {
        // (All zero in a child that was forked meanwhile, whose signals are as they should be.)
        let was_in_use = core::mem::replace(&mut state.own_stack.program_sp, 0) != 0;
        if was_in_use {
            sys::set_signals(state.own_stack.mask);
        }
    }
}

/// Calls a function, which may wait, on the program's stack and with the program's signals.
#[inline(never)]
pub(crate) fn leave<T>(function: impl FnOnce() -> T) -> T {
    /// What the frames of [`run`] take below the stack pointer that it has noted.
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
    // SAFETY: the program's stack below the frames that wait here for the answer.
    let answer = unsafe { Errand::new(function).on(program_top) };
    // (All zero in a child that a handler has forked meanwhile: it has nothing to go back to.)
    // SAFETY: as above.
    if unsafe { state.as_ref() }.is_some_and(|state| state.own_stack.program_sp != 0) {
        let _ = sys::block_signals();
    }
    answer
}
