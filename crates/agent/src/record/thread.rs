//! Hooks in progress on a thread, and how a thread is registered.
//!
//! **Levels.** A signal handler may interrupt a hook and allocate itself. Its events go through the
//! thread's next level, which has its own buffer and cached stack, so that the interrupted level's
//! state is never touched. Three levels exist; an event beyond them is counted as lost.
//!
//! **Ends.** [`thread_states`] and [`late_threads`] describe the owner of a state, and what becomes
//! of the state after its thread has ended.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering::*, compiler_fence};

use heapr_wire::{NO_RECORD_BEFORE, ProcessSlot};

use crate::arch::{thread_pointer, wide_registers};
use crate::frames::control_block::{self, Identity};
pub(crate) use crate::record::thread_state::{
    LEFT_BYTES_OFFSET, LEVELS, Level, Outermost, ThreadState, current,
};
use crate::record::{late_threads, thread_key, thread_states};
use crate::state::{AGENT, own_stack};

/// A hook in progress on a level; ends when dropped. Two words, so that it lives in registers.
pub(crate) struct Scope {
    state: NonNull<ThreadState>,
    level: NonNull<Level>,
}

/// A scope that is passed in registers. (A [`Scope`] that is passed by address must lie in memory.)
#[derive(Clone, Copy)]
pub(crate) struct ScopeHandle {
    state: NonNull<ThreadState>,
    level: NonNull<Level>,
}

impl ScopeHandle {
    /// Returns the scope, which stays open when the returned value is dropped. Only the callee of
    /// the scope's owner may use it, during the call.
    #[inline(always)]
    pub(crate) fn scope(self) -> ManuallyDrop<Scope> {
        ManuallyDrop::new(Scope { state: self.state, level: self.level })
    }
}

impl Scope {
    /// Begins a hook whose caller's stack pointer is `sp`. Returns `None` if the call is not
    /// recorded (the agent is off, or hooks are nested too deeply).
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

    /// Fast path of [`Scope::enter`], for a thread that is registered and in no other hook; must
    /// begin the same scope (heapr's test `victims`). `None`: call [`Scope::enter`], which may
    /// still begin one.
    #[inline(always)]
    pub(crate) fn enter_plainly(sp: usize) -> Option<Self> {
        let state = NonNull::new(current())?;
        // SAFETY: the slot holds null or this thread's state, which is never unmapped.
        if unsafe { (*state.as_ptr()).is_in_hook() } {
            return None;
        }
        Some(Self::begin(state, 0, sp))
    }

    /// Begins a hook on a level below [`LEVELS`]. A signal handler changes `depth` only for its own
    /// duration.
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
            // No memory for the thread's state. (A realloc enters twice, and counts for two lost
            // events.)
            AGENT.count(|slot: &ProcessSlot| &slot.events_lost);
            return None;
        };
        Some(Self::begin(state, 0, sp))
    }

    /// Begins a hook while another is in progress on this thread: a signal handler interrupted that
    /// one, or left it by longjmp.
    #[cold]
    #[inline(never)]
    fn enter_nested(mut state: NonNull<ThreadState>, sp: usize) -> Option<Self> {
        // SAFETY: as in `enter`.
        let state_ref = unsafe { state.as_mut() };
        let mut depth = state_ref.depth.load(Relaxed) as usize;
        let here = state_ref.ranges.find(sp, state_ref.is_main);
        // A hook whose frame lies below the current stack pointer of the same stack has ended. The
        // signal handler that had interrupted it was left by a jump.
        while let Some(&hook_sp) = depth.checked_sub(1).and_then(|top| state_ref.hook_sp.get(top)) {
            if !here.contains(hook_sp) || hook_sp > sp {
                break;
            }
            depth = depth.wrapping_sub(1);
            if let Some(level) = state_ref.levels.get_mut(depth) {
                level.kept.forget();
                // The level may have been left in the middle of a record, and may hold that
                // record's time.
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

    /// Returns a handle for the duration of one call.
    #[inline(always)]
    pub(crate) fn handle(&mut self) -> ScopeHandle {
        ScopeHandle { state: self.state, level: self.level }
    }

    /// Returns the thread's state. Only this hook's level may be changed through it.
    #[inline(always)]
    pub(crate) fn state(&mut self) -> &mut ThreadState {
        // SAFETY: this thread's own state; a nested signal handler uses another level and leaves
        // `depth` as it was.
        unsafe { self.state.as_mut() }
    }

    /// Returns this hook's level.
    #[inline(always)]
    pub(crate) fn level(&mut self) -> &mut Level {
        // SAFETY: a level of this thread's own state, used by this hook alone.
        unsafe { self.level.as_mut() }
    }

    /// Returns the index of this hook's level.
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
        // SAFETY: as in `enter`. Release: a late thread's state may be taken by another thread.
        unsafe { (*self.state.as_ptr()).depth.store(depth, Release) };
    }
}

#[cold]
fn register(identity: &Identity) -> Option<NonNull<ThreadState>> {
    let state = thread_states::take(identity)?;
    // SAFETY: a mapped state that belongs to this thread alone. All that its last thread has left
    // there is cleared.
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
