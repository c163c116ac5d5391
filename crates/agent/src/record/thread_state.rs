//! The agent's state of one thread.
//!
//! It lies in memory that is zero in a forked child. A zero state is a valid one that owns nothing,
//! so the child's first event finds no buffer, takes the slow path and registers anew.

use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

use heapr_ring::{early_ends, writer};
use heapr_wire::{BufferHeader, THREAD_ENDED, ThreadSlot};

use crate::arch::thread_pointer;
use crate::frames::bounds::KnownRanges;
use crate::frames::cached_stack::CachedStack;
use crate::frames::control_block::{self, Identity};
use crate::frames::repairs::Repairs;
use crate::record::countdown::Countdown;
use crate::state::AGENT;
use crate::state::event_clock::View;
use crate::state::own_stack::{self, OwnStack};

/// Number of levels: one for the thread itself and two for nested signal handlers.
pub(crate) const LEVELS: usize = 3;

/// Offset of the countdown's remaining bytes in a thread's state, for the injector's code.
pub(crate) const LEFT_BYTES_OFFSET: usize =
    offset_of!(ThreadState, countdown) + offset_of!(Countdown, left_bytes);

/// One level's buffer and cached stack.
#[repr(C, align(64))]
pub(crate) struct Level {
    /// First word of the current buffer; null without one.
    pub(crate) words: *const AtomicU64,
    /// Header of the current buffer.
    pub(crate) header: *const BufferHeader,
    /// Number of words written.
    pub(crate) cursor: u32,
    /// Number of words that fit.
    pub(crate) limit: u32,
    /// Flag that is published with each record: 0, or `PUBLISHED_CLOSED` if the record closes the
    /// buffer.
    pub(crate) closing: u32,
    /// Time of the last record in the buffer.
    pub(crate) last_ticks: u64,
    pub(crate) clock: View,
    /// The thread's slot; null without one.
    pub(crate) slot: *const ThreadSlot,
    pub(crate) claim: writer::SlotClaim,
    /// Sequence number of the next buffer.
    pub(crate) sequence: u64,
    /// The cached stack: the last captured one.
    pub(crate) kept: CachedStack,
    /// Room for changing the cached stack.
    pub(crate) repairs: Repairs,
    /// The last frames of the program's language, of a type that belongs to `languages`; null: no
    /// frames were read yet.
    pub(crate) language: *mut (),
}

/// A thread's state. See the module's description.
#[repr(C, align(64))]
pub(crate) struct ThreadState {
    /// Number of levels in use.
    pub(crate) depth: AtomicU32,
    /// 1 once the fields below are set; 0 in a forked child.
    is_ready: u32,
    /// Address of the thread's control block, for the injector, which clears the slot there. A
    /// thread that allocates after its last destructor leaves the slot set, in a stack that the C
    /// library reuses for its next thread.
    pub(crate) control_block: usize,
    pub(crate) own_stack: OwnStack,
    /// Stack pointers of the hooks in progress, by level.
    pub(crate) hook_sp: [usize; LEVELS],
    pub(crate) thread_id: u32,
    pub(crate) is_main: bool,
    pub(crate) ranges: KnownRanges,
    pub(crate) levels: [Level; LEVELS],
    /// Stack pointer at the outer call; see [`crate::hooks::inner_calls`].
    pub(crate) outer_sp: usize,
    /// The allocator's function that the program has called; calls that it makes in turn are
    /// recognised by it.
    pub(crate) outermost: Outermost,
    /// The function under way that allocates or frees a tree of blocks: see
    /// [`crate::hooks::tree_calls`].
    pub(crate) tree: Outermost,
    pub(crate) countdown: Countdown,
    /// Whether each buffer is closed with its first record, because no event is known to be the
    /// thread's last.
    pub(crate) closes_buffers: bool,
    pub(crate) ownership: Ownership,
}

const _: () = assert!(offset_of!(ThreadState, control_block) as u64 == heapr_wire::CONTROL_BLOCK_OFFSET);
const _: () = assert!(offset_of!(ThreadState, depth) == own_stack::DEPTH_OFFSET);
const _: () = assert!(offset_of!(ThreadState, own_stack) == own_stack::OWN_STACK_OFFSET);

/// Owner and links of a state, for the lists that it is on: see `thread_states`.
#[repr(C)]
pub(crate) struct Ownership {
    /// Id and flags of the thread that owns the state; 0: free.
    pub(crate) owner: AtomicU64,
    /// Next state in the list of all states.
    pub(crate) next: AtomicPtr<ThreadState>,
    /// Next state in the list of free states.
    pub(crate) next_free: AtomicUsize,
}

/// An allocator's function under way that the program has called: the stack pointer at its entry,
/// and the function's number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outermost {
    pub(crate) entry_sp: usize,
    pub(crate) function: usize,
}

/// Returns the calling thread's state; null before its first event and after its end.
#[inline(always)]
pub(crate) fn current() -> *mut ThreadState {
    thread_pointer::current().cast()
}

impl ThreadState {
    /// True if a hook is in progress.
    #[inline(always)]
    pub(crate) fn is_in_hook(&self) -> bool {
        self.depth.load(Relaxed) != 0
    }

    /// Begins a hook on a state that any thread may borrow. Returns `false` if another thread is in
    /// a hook on it.
    pub(crate) fn begin_alone(&self) -> bool {
        self.depth.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    /// Fills in what a fork has wiped, once the child's process is registered, and what a child
    /// that shares the memory could not know.
    #[cold]
    pub(crate) fn revive(&mut self) {
        if self.is_ready == 0 {
            self.make_ready(&control_block::identity_in_child());
        }
    }

    /// Sets the fields that describe the state's thread.
    pub(crate) fn make_ready(&mut self, identity: &Identity) {
        self.control_block = thread_pointer::thread_pointer();
        self.thread_id = identity.thread_id;
        self.is_main = identity.is_main;
        self.closes_buffers = identity.is_lent;
        self.is_ready = 1;
        let start_ticks = AGENT.start_ticks.load(Relaxed);
        for level in &mut self.levels {
            level.clock = View::new(identity.thread_id, start_ticks);
        }
    }

    /// Gives the buffers and slots of all levels back to the recorder, because the thread is about
    /// to end.
    pub(crate) fn close(&mut self) {
        self.levels.iter_mut().for_each(close);
        self.is_ready = 0;
    }

    /// Clears what belonged to the state's last thread.
    pub(crate) fn forget_owner(&mut self) {
        self.levels.iter_mut().for_each(Level::abandon);
        self.own_stack.forget_use();
        self.ranges = KnownRanges::EMPTY;
        self.outer_sp = 0;
        (self.outermost, self.tree) = (Outermost::NONE, Outermost::NONE);
    }
}

impl Level {
    /// Gives the buffer back to the recorder, if there is one.
    pub(crate) fn close_buffer(&mut self) {
        // A buffer that was closed with its first record may belong to another thread by now.
        // Without a record it is still this thread's.
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

impl Level {
    /// Forgets buffer and slot. The recorder takes them back itself when it finds that the thread
    /// has ended, and may already have given them to another thread.
    pub(crate) fn abandon(&mut self) {
        if let Some(pool) = AGENT.pool().filter(|_| !self.words.is_null()) {
            early_ends::take_out_of_sight(pool, self.words.cast());
        }
        self.header = core::ptr::null();
        (self.closing, self.cursor, self.limit) = (0, 0, 0);
        self.words = core::ptr::null();
        self.slot = core::ptr::null();
        self.claim = writer::NO_CLAIM;
        self.sequence = 0;
        self.kept.forget();
    }
}

/// Gives a level's buffer and slot back to the recorder.
fn close(level: &mut Level) {
    level.close_buffer();
    if !level.slot.is_null() {
        // SAFETY: the slot that this thread owns. Release: pairs with the recorder's Acquire; this
        // is the last store to the slot.
        unsafe { (*level.slot).state.store(THREAD_ENDED, Release) };
    }
    level.abandon();
}
