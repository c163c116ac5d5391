//! The agent's state in one process: whether it records, its slot in the pool, and the data that a
//! fork must reset.
//!
//! ```text
//! UNSTARTED --first hook or constructor--> STARTING --> ACTIVE --> DISABLED
//!                                              \---------------------^
//! ```
//!
//! `DISABLED` is for good, with a reason. Disabling points every trampoline at the real function:
//! the program then runs on at full speed.

mod buffer_claims;
pub(crate) mod callback;
pub(crate) mod claims;
pub(crate) mod event_clock;
pub(crate) mod own_stack;
pub(crate) mod page_marks;
pub(crate) mod program;

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

use heapr_ring::{Pool, sys, writer};
use heapr_wire::{
    DisableReason, FLAG_NO_FOLLOW, NO_SLOT, ORIGIN_ATTACH, ORIGIN_EXEC, ORIGIN_FORK, PACKED_SIZE_MAX,
    PROCESS_DISABLED, SESSION_CLOSED, SESSION_RECORDING,
};
use writer::{ProcessClaim, SlotClaim};

use crate::arch::thread_pointer;
use crate::state::callback::Callback;
use crate::state::event_clock::{EventClock, Region, View};

/// No hook has run yet.
pub(crate) const UNSTARTED: u32 = 0;
/// One thread starts the agent.
pub(crate) const STARTING: u32 = 1;
/// Events are recorded.
pub(crate) const ACTIVE: u32 = 2;
/// Recording has ended.
pub(crate) const DISABLED: u32 = 3;

/// Largest number of node blocks of one process.
pub(crate) const NODE_BLOCKS_MAX: usize = 65_536;
/// Data that must not survive a fork. It lies in memory that the kernel zeroes in the child. So no
/// hook of the child can write into the parent's buffers, by whatever call it was forked (fork,
/// _Fork, raw clone).
#[repr(C)]
pub(crate) struct ForkLocal {
    registration: AtomicU32,
    slot: AtomicU32,
    generation: AtomicU32,
    /// 1 once the modules that a forked child has from its parent are reported to the recorder.
    pub(crate) has_told_modules: AtomicU32,
    /// Id of the process that this memory belongs to (a child by vfork makes calls here, too); 0:
    /// not determined yet in this process.
    pub(crate) process_id: AtomicU32,
    /// Next number of a stack node; node 0 is the empty stack, so the first is 1.
    pub(crate) node_count: AtomicU32,
    /// Index of the pool buffer (plus one) of each node block.
    pub(crate) node_blocks: [AtomicU32; NODE_BLOCKS_MAX],
    /// The stack tree's current table, of a type that belongs to `tree`.
    pub(crate) tree_table: AtomicPtr<()>,
    /// 1 while a thread makes a larger table.
    pub(crate) tree_growing: AtomicU32,
    /// Bytes of the threads' grown suffix tables: see `frames::suffix_table`.
    pub(crate) grown_suffixes_bytes: AtomicUsize,
}

const UNREGISTERED: u32 = 0;
const REGISTERING: u32 = 1;
const REGISTERED: u32 = 2;

/// The process's state; see the module's description.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) state: AtomicU32,
    pool: AtomicPtr<Pool>,
    fork_local: AtomicPtr<ForkLocal>,
    pub(crate) clock: EventClock,
    pub(crate) start_ticks: AtomicU64,
    /// Slot that this process had, or the one that it was forked from.
    last_slot: AtomicU32,
    /// Number of registrations in this image: the second and later ones are forks.
    registration_count: AtomicU32,
    /// Counter that is incremented when addresses of code may have changed their meaning.
    pub(crate) code_epoch: AtomicU32,
    /// 1: threads have their ids in their control blocks, as in glibc.
    pub(crate) has_ids_in_blocks: AtomicU32,
    /// Id of the process that was registered last: this one, or the one it was forked from.
    last_process_id: AtomicU32,
    /// 1: the agent was injected into the running process; its hooks are the injector's.
    pub(crate) is_injected: AtomicU32,
    /// 1: the program defines its own malloc, which precedes the agent's.
    pub(crate) has_own_malloc: AtomicU32,
    /// Least size in bytes of allocations that must take the slow path. That is the least size that
    /// does not fit beside a stack, or 0 once there are frames of a language to add.
    pub(crate) plain_bytes_end: AtomicUsize,
    /// Function that takes the hooks out of the program's calls.
    pub(crate) on_end: Callback,
}

/// The one instance.
pub(crate) static AGENT: Agent = Agent {
    state: AtomicU32::new(UNSTARTED),
    pool: AtomicPtr::new(core::ptr::null_mut()),
    fork_local: AtomicPtr::new(core::ptr::null_mut()),
    clock: EventClock::new(),
    start_ticks: AtomicU64::new(0),
    last_slot: AtomicU32::new(NO_SLOT),
    registration_count: AtomicU32::new(0),
    code_epoch: AtomicU32::new(1),
    has_ids_in_blocks: AtomicU32::new(0),
    last_process_id: AtomicU32::new(0),
    is_injected: AtomicU32::new(0),
    has_own_malloc: AtomicU32::new(0),
    plain_bytes_end: AtomicUsize::new(PACKED_SIZE_MAX + 1),
    on_end: Callback::none(),
};

impl Agent {
    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.state.load(Relaxed) == ACTIVE
    }

    /// Returns the pool; `None` before the start and if there is no pool.
    #[inline(always)]
    pub(crate) fn pool(&self) -> Option<&'static Pool> {
        // SAFETY: null, or set once in `attach` to a value in memory that is never freed.
        unsafe { self.pool.load(Acquire).as_ref() }
    }

    /// Returns the data that a fork resets.
    #[inline(always)]
    pub(crate) fn fork_local(&self) -> Option<&'static ForkLocal> {
        // SAFETY: as for the pool; all fields are atomics, valid for any bits.
        unsafe { self.fork_local.load(Relaxed).as_ref() }
    }

    /// Installs an opened pool. Called once, by the starting thread.
    pub(crate) fn attach(&self, pool: Pool) -> Result<(), DisableReason> {
        let memory = sys::map_anonymous(size_of::<Pool>(), false).map_err(|_| DisableReason::NoMemory)?;
        let fork_local =
            sys::map_anonymous(size_of::<ForkLocal>(), true).map_err(|_| DisableReason::NoMemory)?;
        let memory = memory.cast::<Pool>();
        // SAFETY: a fresh page, large enough and aligned, that nothing else uses.
        unsafe { memory.write(pool) };
        self.fork_local.store(fork_local.cast(), Relaxed);
        // Release: pairs with the Acquire in `pool`.
        self.pool.store(memory, Release);
        Ok(())
    }

    /// Reads the time for an event; see [`EventClock::event_ticks`].
    #[inline(always)]
    pub(crate) fn event_ticks(&self, view: &mut View, region: Option<Region>, position: u32) -> Option<u64> {
        let ticks = self.clock.event_ticks(view, region, position);
        if ticks.is_none() {
            self.take_leave();
        }
        ticks
    }

    /// Ends the recording for good if the injector has requested that. Called if the clock gave no
    /// time.
    #[cold]
    #[inline(never)]
    fn take_leave(&self) {
        if self.clock.is_ended() {
            self.end(DisableReason::LetGo);
        }
    }

    /// Reads the time for anything that is not an event.
    fn now_ticks(&self) -> u64 {
        self.clock.now_ticks(self.start_ticks.load(Relaxed))
    }

    /// Returns the process's slot, registering the process on the first call in this address space
    /// (also after a fork). Returns `None` if the process is not to be traced; then the agent is
    /// disabled.
    pub(crate) fn process(&self) -> Option<SlotClaim> {
        let local = self.fork_local()?;
        loop {
            match local.registration.load(Acquire) {
                REGISTERED => {
                    let claim = SlotClaim {
                        index: local.slot.load(Relaxed),
                        generation: local.generation.load(Relaxed),
                    };
                    return Some(claim);
                }
                UNREGISTERED
                    if local
                        .registration
                        .compare_exchange(UNREGISTERED, REGISTERING, Acquire, Relaxed)
                        .is_ok() =>
                {
                    return self.register(local);
                }
                // Another thread is registering: a few stores and system calls.
                _ => core::hint::spin_loop(),
            }
            if !self.is_active() {
                return None;
            }
        }
    }

    fn register(&self, local: &ForkLocal) -> Option<SlotClaim> {
        let pool = self.pool()?;
        let is_fork = self.registration_count.fetch_add(1, Relaxed) > 0;
        let control = pool.control();
        let asked_id = sys::process_id();
        let process_id = self.id_of_process(asked_id);
        if process_id == 0 {
            // A forked child that may not even ask for its own id.
            control.processes_refused.fetch_add(1, Relaxed);
            control.forks_arrived.fetch_add(u32::from(is_fork), Relaxed);
            self.disable(DisableReason::Forbidden);
            return None;
        }
        let root = control.root_pid.compare_exchange(0, process_id, Relaxed, Relaxed);
        let is_attached = !is_fork && self.is_injected.load(Relaxed) != 0;
        let is_root =
            root.is_ok() || root == Err(process_id) || is_attached || program::is_named_root(process_id);
        if !is_root && control.flags.load(Relaxed) & FLAG_NO_FOLLOW != 0 {
            self.disable(DisableReason::NotFollowed);
            return None;
        }
        if control.state.load(Relaxed) != SESSION_RECORDING {
            self.disable(why_closed(pool));
            return None;
        }
        let claim = ProcessClaim {
            process_id,
            // A child by vfork acts for its parent, whose parent is the process that was forked.
            parent_id: if process_id == asked_id { 0 } else { self.last_process_id.load(Relaxed) },
            origin: match (is_fork, is_attached) {
                (true, _) => ORIGIN_FORK,
                (_, true) => ORIGIN_ATTACH,
                _ => ORIGIN_EXEC,
            },
            parent_slot: if is_fork { self.last_slot.load(Relaxed) } else { NO_SLOT },
            start_ticks: self.now_ticks(),
            has_own_malloc: !is_fork && !is_attached && self.has_own_malloc.load(Relaxed) != 0,
            executable: program::executable(),
        };
        let Some(claim) = writer::claim_process(pool, claim) else {
            self.disable(DisableReason::NoProcessSlot);
            return None;
        };
        if is_fork {
            control.forks_arrived.fetch_add(1, Relaxed);
        }
        self.last_slot.store(claim.index, Relaxed);
        self.last_process_id.store(process_id, Relaxed);
        local.process_id.store(process_id, Relaxed);
        local.slot.store(claim.index, Relaxed);
        local.generation.store(claim.generation, Relaxed);
        local.node_count.store(1, Relaxed);
        // Release: pairs with the Acquire in `process`.
        local.registration.store(REGISTERED, Release);
        Some(claim)
    }

    /// Returns the id of the process that owns this memory. It is the caller's, unless the caller
    /// is a child by vfork of a forked process that has made no call itself.
    fn id_of_process(&self, asked_id: u32) -> u32 {
        if self.has_ids_in_blocks.load(Relaxed) == 0 {
            return asked_id;
        }
        // SAFETY: glibc's control block.
        let in_block = unsafe { thread_pointer::id_in_control_block() };
        // After a raw clone the control block still has the id of the parent's thread.
        let is_parents = in_block == self.last_process_id.load(Relaxed);
        let is_own = in_block == 0 || in_block == asked_id || is_parents;
        if is_own || sys::parent_process_id() != in_block { asked_id } else { in_block }
    }

    /// Disables the agent as [`Agent::disable`] does, if it is active.
    pub(crate) fn end(&self, reason: DisableReason) {
        if self.is_active() {
            self.disable(reason);
        }
    }

    /// Stops recording for good in this process. The program runs on at full speed.
    #[cold]
    pub(crate) fn disable(&self, reason: DisableReason) {
        self.state.store(DISABLED, Relaxed);
        self.on_end.call();
        if let Some(slot) = self.slot() {
            slot.disable_reason.store(reason as u32, Relaxed);
            slot.state.store(PROCESS_DISABLED, Release);
        }
    }

    /// Returns the process's slot, if it has one.
    pub(crate) fn slot(&self) -> Option<&'static heapr_wire::ProcessSlot> {
        let (pool, local) = (self.pool()?, self.fork_local()?);
        let is_registered = local.registration.load(Acquire) == REGISTERED;
        pool.process_slot(local.slot.load(Relaxed)).filter(|_| is_registered)
    }

    /// Returns the process's slot, or that of the process it was forked from, if it has no slot
    /// yet.
    pub(crate) fn slot_or_parents(&self) -> Option<&'static heapr_wire::ProcessSlot> {
        self.slot().or_else(|| self.pool()?.process_slot(self.last_slot.load(Relaxed)))
    }

    /// Adds to one of the process's counters.
    #[cold]
    pub(crate) fn count(&self, choose: impl Fn(&heapr_wire::ProcessSlot) -> &AtomicU64) {
        if let Some(slot) = self.slot() {
            choose(slot).fetch_add(1, Relaxed);
        }
    }
}

/// Returns the reason why a session is not recording.
fn why_closed(pool: &Pool) -> DisableReason {
    match pool.control().state.load(Relaxed) {
        SESSION_RECORDING | SESSION_CLOSED => DisableReason::SessionClosed,
        _ => DisableReason::PoolOverwritten,
    }
}
