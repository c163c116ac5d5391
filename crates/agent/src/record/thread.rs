//! Hooks in progress on a thread, and how a thread is registered.
//!
//! **Levels.** A signal handler may interrupt a hook and allocate itself. Its events go through the
//! thread's next level, which has a buffer and a kept stack of its own, so that the interrupted
//! level's state is never touched. Three levels exist; an event beyond them is counted as lost.
//!
//! **Ends.** Whose a state is, and what becomes of it when its thread has ended, stands in
//! [`thread_states`] and [`late_threads`].

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering::*, compiler_fence};

use heapr_wire::{NO_RECORD_BEFORE, ProcessSlot};

use crate::frames::control_block::{self, Identity};
pub(crate) use crate::record::thread_state::{
    LEFT_BYTES_OFFSET, LEVELS, Level, Outermost, ThreadState, current,
};
use crate::record::{late_threads, thread_key, thread_states};
use crate::state::{AGENT, own_stack};
use crate::x86_64::{thread_pointer, wide_registers};

/// A hook in progress on a level; ends when dropped. Two words, so that it lives in registers.
pub(crate) struct Scope {
    state: NonNull<ThreadState>,
    level: NonNull<Level>,
}

/// A scope that is passed in registers: one that is passed by its address must lie in memory.
#[derive(Clone, Copy)]
pub(crate) struct ScopeHandle {
    state: NonNull<ThreadState>,
    level: NonNull<Level>,
}

impl ScopeHandle {
    /// The scope, which goes on when this ends. Only its owner's callee has it meanwhile.
    #[inline(always)]
    pub(crate) fn scope(self) -> ManuallyDrop<Scope> {
        ManuallyDrop::new(Scope { state: self.state, level: self.level })
    }
}

impl Scope {
    /// Begins a hook whose caller's stack pointer is `sp`. `None`: not recorded (the agent is off,
    /// or too deeply nested).
    #[inline(always)]
    pub(crate) fn enter(sp: usize) -> Option<Self> {
        let Some(state) = NonNull::new(current()) else {
            return Self::enter_first(sp);
        };
        // SAFETY: the slot holds null or this thread's state, which is never unmapped.
        if unsafe { (*state.as_ptr()).is_in_hook() } {
            return Self::enter_nested(state, sp);
        }
        Some(Self::begin(state, 0, sp))
    }

    /// Must begin what [`Scope::enter`] does, for a thread that is known and in no other hook
    /// (heapr's test `victims`). `None`: that one may say otherwise.
    #[inline(always)]
    pub(crate) fn enter_plainly(sp: usize) -> Option<Self> {
        let state = NonNull::new(current())?;
        // SAFETY: the slot holds null or this thread's state, which is never unmapped.
        if unsafe { (*state.as_ptr()).is_in_hook() } {
            return None;
        }
        Some(Self::begin(state, 0, sp))
    }

    /// Takes a level below [`LEVELS`]. A signal handler changes `depth` only for its own duration.
    #[inline(always)]
    fn begin(state: NonNull<ThreadState>, depth: usize, sp: usize) -> Self {
        let pointer = state.as_ptr();
        // SAFETY: this thread's state; both arrays have LEVELS entries.
        let level = unsafe {
            (&raw mut (*pointer).hook_sp).cast::<usize>().add(depth).write(sp);
            (*pointer).depth.store(depth as u32 + 1, Relaxed);
            NonNull::new_unchecked((&raw mut (*pointer).levels).cast::<Level>().add(depth))
        };
        compiler_fence(SeqCst);
        Self { state, level }
    }

    #[cold]
    #[inline(never)]
    fn enter_first(sp: usize) -> Option<Self> {
        if !AGENT.is_active() {
            return None;
        }
        let identity = control_block::identity();
        let state = if late_threads::has_ended(identity.thread_id) {
            late_threads::borrow_state(&identity)
        } else {
            register(&identity)
        };
        let Some(state) = state else {
            // No memory for the thread's state. (A realloc, which asks twice, counts for two.)
            AGENT.count(|slot: &ProcessSlot| &slot.events_lost);
            return None;
        };
        Some(Self::begin(state, 0, sp))
    }

    /// A hook while another is in progress on this thread: a signal handler interrupted it, or left
    /// it by longjmp.
    #[cold]
    #[inline(never)]
    fn enter_nested(mut state: NonNull<ThreadState>, sp: usize) -> Option<Self> {
        // SAFETY: as in `enter`.
        let state_ref = unsafe { state.as_mut() };
        let mut depth = state_ref.depth.load(Relaxed) as usize;
        let here = state_ref.ranges.find(sp, state_ref.is_main);
        // A hook whose frame lies below the current stack pointer of the same stack is gone:
        // somebody jumped out of the signal handler that had interrupted it.
        while let Some(&hook_sp) = depth.checked_sub(1).and_then(|top| state_ref.hook_sp.get(top)) {
            if !here.contains(hook_sp) || hook_sp > sp {
                break;
            }
            depth = depth.wrapping_sub(1);
            if let Some(level) = state_ref.levels.get_mut(depth) {
                level.kept.forget();
                // It was left in the middle of a record, perhaps, and may hold that one's time.
                level.last_ticks = NO_RECORD_BEFORE;
            }
        }
        state_ref.own_stack.forget(depth);
        if depth >= LEVELS {
            AGENT.count(|slot: &ProcessSlot| &slot.events_lost);
            return None;
        }
        Some(Self::begin(state, depth, sp))
    }

    /// For the time of one call.
    #[inline(always)]
    pub(crate) fn handle(&mut self) -> ScopeHandle {
        ScopeHandle { state: self.state, level: self.level }
    }

    /// The thread's state. Only this hook's level may be changed through it.
    #[inline(always)]
    pub(crate) fn state(&mut self) -> &mut ThreadState {
        // SAFETY: this thread's own state; a nested signal handler uses another level and leaves
        // `depth` as it was.
        unsafe { self.state.as_mut() }
    }

    /// This hook's level.
    #[inline(always)]
    pub(crate) fn level(&mut self) -> &mut Level {
        // SAFETY: a level of this thread's own state, used by this hook alone.
        unsafe { self.level.as_mut() }
    }

    /// Number of this hook's level.
    #[inline(always)]
    pub(crate) fn depth(&self) -> u32 {
        // SAFETY: the state outlives the scope; only its address is taken.
        let first = unsafe { (&raw mut (*self.state.as_ptr()).levels).cast::<Level>() };
        if self.level.as_ptr() == first { 0 } else { self.nested_depth(first) }
    }

    #[cold]
    #[inline(never)]
    fn nested_depth(&self, first: *mut Level) -> u32 {
        ((self.level.as_ptr() as usize).wrapping_sub(first as usize) / size_of::<Level>()) as u32
    }
}

impl Drop for Scope {
    #[inline(always)]
    fn drop(&mut self) {
        let depth = self.depth();
        compiler_fence(SeqCst);
        // SAFETY: as in `enter`. Release: another thread may take the state of one that is late.
        unsafe { (*self.state.as_ptr()).depth.store(depth, Release) };
    }
}

#[cold]
fn register(identity: &Identity) -> Option<NonNull<ThreadState>> {
    let state = thread_states::take(identity)?;
    // SAFETY: a mapped state of this thread alone. What another thread has left there is not this
    // one's.
    unsafe {
        (*state).forget_owner();
        (*state).depth.store(0, Relaxed);
        (*state).make_ready(identity);
        (*state).countdown.begin();
    }
    thread_pointer::set_current(state.cast());
    if wide_registers::are_kept() {
        own_stack::run(|| thread_key::arm(state));
    } else {
        thread_key::arm(state);
    }
    NonNull::new(state)
}
