//! What the agent keeps per thread, and how a thread is registered and ends.
//!
//! A thread's state lies in memory that is zero in a forked child: a zero state is a valid one that
//! owns nothing, so the child's first event finds no buffer, takes the slow path and registers
//! anew.
//!
//! **Levels.** A signal handler may interrupt a hook and allocate itself. Its events go through the
//! thread's next level, which has a buffer and a kept stack of its own, so that the interrupted
//! level's state is never touched. Three levels exist; an event beyond them is counted as lost.

use core::ffi::c_void;
use core::mem::{ManuallyDrop, offset_of};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*, compiler_fence};

use heapr_ring::{sys, writer};
use heapr_wire::{
    BufferHeader, INJECTED_KEY_SET_TWICE, NO_RECORD_BEFORE, ProcessSlot, THREAD_ENDED, ThreadSlot,
};

use crate::frames::bounds::KnownRanges;
use crate::frames::control_block;
use crate::frames::kept_stack::Kept;
use crate::frames::repairs::Repairs;
use crate::modules::link_map;
use crate::record::countdown::Countdown;
use crate::state::AGENT;
use crate::state::event_clock::View;
use crate::state::own_stack::{self, OwnStack};
use crate::x86_64::thread_pointer;
use crate::x86_64::wide_registers::{self, call_keeping};

/// The thread itself and two nested signal handlers.
pub(crate) const LEVELS: usize = 3;

/// Where a thread's state has what is left of its countdown, for the injector's code.
pub(crate) const LEFT_BYTES_OFFSET: usize =
    offset_of!(ThreadState, countdown) + offset_of!(Countdown, left_bytes);

/// One level's buffer and kept stack.
#[repr(C, align(64))]
pub(crate) struct Level {
    /// First word of the current buffer; null without one.
    pub(crate) words: *const AtomicU64,
    /// Its header.
    pub(crate) header: *const BufferHeader,
    /// Words written.
    pub(crate) cursor: u32,
    /// Words that fit.
    pub(crate) limit: u32,
    /// Goes with each record that is published: 0, or that the buffer is closed with it.
    pub(crate) closing: u32,
    /// Time of the last record in the buffer.
    pub(crate) last_ticks: u64,
    pub(crate) clock: View,
    /// The thread's slot; null without one.
    pub(crate) slot: *const ThreadSlot,
    pub(crate) claim: writer::SlotClaim,
    /// Number of the next buffer.
    pub(crate) sequence: u64,
    /// The last captured stack.
    pub(crate) kept: Kept,
    /// Room for changing it.
    pub(crate) repairs: Repairs,
    /// The last frames of the program's language, whose type is the languages' own; null: none were
    /// read yet.
    pub(crate) language: *mut (),
    /// The event is of a block that has moved: what pointed into it is about to be changed.
    pub(crate) has_moved: bool,
}

/// A thread's state. See the module.
#[repr(C, align(64))]
pub(crate) struct ThreadState {
    /// Levels in use now.
    depth: u32,
    /// 1 once the fields below are set; 0 in a forked child.
    is_ready: u32,
    /// For the injector, which clears the slot there: a thread that allocates after its last
    /// destructor leaves it behind, in a stack that the C library keeps for the next one.
    control_block: usize,
    pub(crate) own_stack: OwnStack,
    /// Stack pointers of the hooks in progress, by level.
    hook_sp: [usize; LEVELS],
    pub(crate) thread_id: u32,
    pub(crate) is_main: bool,
    pub(crate) ranges: KnownRanges,
    pub(crate) levels: [Level; LEVELS],
    /// See [`crate::hooks::inner_calls`].
    pub(crate) outer_sp: usize,
    next_free: AtomicUsize,
    /// The allocator's function that the program has called, for those that it calls in turn.
    pub(crate) outermost: Outermost,
    /// The same of blocks that hang on one another: see [`crate::hooks::tree_calls`].
    pub(crate) tree: Outermost,
    pub(crate) countdown: Countdown,
}

const _: () = assert!(offset_of!(ThreadState, control_block) as u64 == heapr_wire::CONTROL_BLOCK_OFFSET);
const _: () = assert!(offset_of!(ThreadState, depth) == own_stack::DEPTH_OFFSET);
const _: () = assert!(offset_of!(ThreadState, own_stack) == own_stack::OWN_STACK_OFFSET);

/// An allocator's function under way that the program has called: the stack pointer at its entry,
/// and which one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outermost {
    pub(crate) entry_sp: usize,
    pub(crate) function: usize,
}

/// The calling thread's state; null before its first event and after its end.
#[inline(always)]
pub(crate) fn current() -> *mut ThreadState {
    thread_pointer::current().cast()
}

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
        if unsafe { (*state.as_ptr()).depth } != 0 {
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
        if unsafe { (*state.as_ptr()).depth } != 0 {
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
            (*pointer).depth = depth as u32 + 1;
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
        let Some(state) = register().and_then(NonNull::new) else {
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
        let mut depth = state_ref.depth as usize;
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
        // SAFETY: as in `enter`.
        unsafe { (*self.state.as_ptr()).depth = depth };
    }
}

/// Head of the list of states of ended threads: address, with a count in the upper 16 bits against
/// ABA.
static FREE_STATES: AtomicU64 = AtomicU64::new(0);
/// Key of the end-of-thread handler plus one; 0 without one.
static END_KEY: AtomicU32 = AtomicU32::new(0);
/// Threads that are setting their value of that key.
static ARMING: AtomicU32 = AtomicU32::new(0);
/// `pthread_setspecific`; 0 without one.
static SET_SPECIFIC: AtomicUsize = AtomicUsize::new(0);

const ADDRESS_BITS: u64 = (1 << 48) - 1;

#[cold]
fn register() -> Option<*mut ThreadState> {
    let state = match reuse_state() {
        Some(state) => state,
        None => sys::map_anonymous(size_of::<ThreadState>(), true).ok()?.cast::<ThreadState>(),
    };
    make_ready(state, control_block::ids());
    // SAFETY: a mapped state of this thread alone. What another thread has left there is not this
    // one's.
    unsafe { (*state).countdown.begin() };
    thread_pointer::set_current(state.cast());
    AGENT.thread_count.fetch_add(1, Relaxed);
    if wide_registers::are_kept() {
        own_stack::run(|| arm_end_of_thread(state));
    } else {
        arm_end_of_thread(state);
    }
    Some(state)
}

/// `known_ids`: of the thread and its process; `None`: the kernel is asked.
fn make_ready(state: *mut ThreadState, known_ids: Option<(u32, u32)>) {
    // SAFETY: a mapped state of this thread alone.
    let state = unsafe { &mut *state };
    let (thread_id, process_id) = known_ids.unwrap_or_else(|| {
        let ids = (sys::thread_id(), sys::process_id());
        control_block::learn(ids.0, ids.1);
        ids
    });
    state.control_block = thread_pointer::thread_pointer();
    state.thread_id = thread_id;
    state.is_main = thread_id == process_id;
    state.is_ready = 1;
    let start_ticks = AGENT.start_ticks.load(Relaxed);
    for level in &mut state.levels {
        level.clock = View::new(thread_id, start_ticks);
    }
}

impl ThreadState {
    /// Whether a hook is in progress.
    #[inline(always)]
    pub(crate) fn is_in_hook(&self) -> bool {
        self.depth != 0
    }

    /// Fills in what a fork has wiped.
    #[cold]
    pub(crate) fn revive(&mut self) {
        if self.is_ready == 0 {
            make_ready(self, None);
        }
    }
}

fn reuse_state() -> Option<*mut ThreadState> {
    loop {
        let head = FREE_STATES.load(Acquire);
        let state = (head & ADDRESS_BITS) as *mut ThreadState;
        if state.is_null() {
            return None;
        }
        // SAFETY: states are never unmapped; a stale one's link is thrown away by the failing
        // exchange.
        let next = unsafe { (*state).next_free.load(Relaxed) } as u64;
        let tag = (head >> 48).wrapping_add(1) << 48;
        if FREE_STATES.compare_exchange(head, tag | next, AcqRel, Relaxed).is_ok() {
            return Some(state);
        }
    }
}

/// Asks for a key whose destructor tells the end of each thread.
///
/// `create` and `delete`: where `pthread_key_create` and `pthread_key_delete` are; 0: nowhere.
pub(crate) fn register_end_of_thread(create: usize, delete: usize) {
    /// Keys below this are stored in the thread's own descriptor: setting them does not allocate
    /// (glibc PTHREAD_KEY_2NDLEVEL_SIZE; musl stores all so).
    const INLINE_KEYS: u32 = 32;
    let set = link_map::find_anywhere(b"pthread_setspecific");
    if create == 0 || set == 0 {
        return;
    }
    let mut key = 0_u32;
    // SAFETY: the POSIX functions of these names.
    let status = unsafe { claim_key(create, delete, &raw mut key) };
    if status == 0 && key < INLINE_KEYS {
        SET_SPECIFIC.store(set, Relaxed);
        END_KEY.store(key.wrapping_add(1), Release);
        // The thread that starts the agent was registered before the key existed.
        let state = current();
        if !state.is_null() {
            arm_end_of_thread(state);
        }
    }
}

/// Asks for the last of the keys whose values lie in the thread's descriptor. Called by the
/// injector, too.
///
/// The last: another C library in the process (dlmopen) counts its keys from the first on, and
/// keeps their values in the same places.
///
/// # Safety
/// 1. `create` and `delete` are the POSIX functions' addresses, `key` may be written.
pub(crate) unsafe extern "C" fn claim_key(create: usize, delete: usize, key: *mut u32) -> i32 {
    const INLINE_KEYS: usize = 32;
    const NONE: u32 = u32::MAX;
    // SAFETY: (1).
    let (create, delete) = unsafe {
        (
            core::mem::transmute::<usize, unsafe extern "C" fn(*mut u32, extern "C" fn(*mut c_void)) -> i32>(
                create,
            ),
            core::mem::transmute::<usize, Option<unsafe extern "C" fn(u32) -> i32>>(delete),
        )
    };
    let (mut claimed, mut status) = (NONE, 0);
    let mut others = [NONE; INLINE_KEYS + 1];
    for other in &mut others {
        let mut next = NONE;
        // SAFETY: (1).
        status = unsafe { create(&raw mut next, end_of_thread) };
        if status != 0 {
            break;
        }
        let is_inline = (next as usize) < INLINE_KEYS;
        // Without a way to give it back the first one is as good.
        *other = if is_inline { core::mem::replace(&mut claimed, next) } else { next };
        if !is_inline || next as usize + 1 == INLINE_KEYS || delete.is_none() {
            break;
        }
    }
    for other in others.into_iter().filter(|&other| other != NONE) {
        if let Some(delete) = delete {
            // SAFETY: (1).
            unsafe { delete(other) };
        }
    }
    // SAFETY: (1).
    unsafe { key.write(claimed) };
    if claimed == NONE { status } else { 0 }
}

/// As [`register_end_of_thread`], with a key (plus one; 0: none) that somebody else has asked for.
pub(crate) fn end_of_thread_by(key: u32, set_specific_avma: usize) {
    SET_SPECIFIC.store(set_specific_avma, Relaxed);
    END_KEY.store(key, Release);
}

fn arm_end_of_thread(state: *mut ThreadState) {
    ARMING.fetch_add(1, SeqCst);
    let key = END_KEY.load(SeqCst);
    let set = SET_SPECIFIC.load(Relaxed);
    if key != 0 && set != 0 {
        // SAFETY: the POSIX function of this signature; the key is ours and below the inline limit,
        // so nothing allocates.
        unsafe {
            let number = (key & !INJECTED_KEY_SET_TWICE).wrapping_sub(1) as usize;
            if key & INJECTED_KEY_SET_TWICE != 0 {
                call_keeping(number, 0, set);
            }
            call_keeping(number, state as usize, set);
        }
    }
    ARMING.fetch_sub(1, SeqCst);
}

/// Gives the key back, for the program: from now on the recorder must find out itself which threads
/// have ended. Whether there was one.
#[cold]
pub(crate) fn give_up_key(delete: fn(u32) -> i32) -> bool {
    const LOOKS_MAX: u32 = 10_000;
    let key = END_KEY.swap(0, SeqCst);
    if key == 0 {
        return false;
    }
    // A thread that has read the key must not set what will be the program's.
    let is_unused = (0..LOOKS_MAX).any(|_| {
        core::hint::spin_loop();
        ARMING.load(SeqCst) == 0
    });
    if !is_unused {
        END_KEY.store(key, SeqCst);
    }
    is_unused && delete((key & !INJECTED_KEY_SET_TWICE).wrapping_sub(1)) == 0
}

/// Runs among the thread's destructors. One that runs later and allocates registers the thread
/// again.
pub(crate) extern "C" fn end_of_thread(state: *mut c_void) {
    let state = state.cast::<ThreadState>();
    // An injected agent's slot is the key's own value, which is null by now.
    let now = current();
    if state.is_null() || (now != state && !now.is_null()) {
        return;
    }
    thread_pointer::set_current(core::ptr::null_mut());
    // SAFETY: this thread's state, no longer reachable through the slot.
    let state_ref = unsafe { &mut *state };
    for level in &mut state_ref.levels {
        close(level);
    }
    state_ref.is_ready = 0;
    state_ref.depth = 0;
    state_ref.outer_sp = 0;
    state_ref.ranges = KnownRanges::EMPTY;
    loop {
        let head = FREE_STATES.load(Relaxed);
        state_ref.next_free.store((head & ADDRESS_BITS) as usize, Relaxed);
        let tag = (head >> 48).wrapping_add(1) << 48;
        if FREE_STATES.compare_exchange(head, tag | state as u64, AcqRel, Relaxed).is_ok() {
            return;
        }
    }
}

impl Level {
    /// Gives the buffer back to the recorder, if there is one.
    pub(crate) fn close_buffer(&mut self) {
        // One that was closed with its first record may be another's by now; without a record it is
        // still this thread's.
        let is_ours = self.closing == 0 || self.cursor == 0;
        if !self.header.is_null() && is_ours {
            // SAFETY: the header of a buffer that this thread owns.
            let header = unsafe { &*self.header };
            match AGENT.pool() {
                Some(pool) if self.closing == 0 => writer::close_buffer(pool, header),
                // Release: after the last record.
                _ => header.closed.store(1, Release),
            }
        }
        self.header = core::ptr::null();
        self.closing = 0;
        self.cursor = 0;
        self.limit = 0;
    }
}

/// Gives a level's buffer and slot back to the recorder.
fn close(level: &mut Level) {
    level.close_buffer();
    if !level.slot.is_null() {
        // SAFETY: the slot that this thread owns. Release: pairs with the recorder's Acquire;
        // nothing comes after.
        unsafe { (*level.slot).state.store(THREAD_ENDED, Release) };
    }
    level.words = core::ptr::null();
    level.slot = core::ptr::null();
    level.claim = writer::NO_CLAIM;
    level.sequence = 0;
    level.kept.forget();
}
