//! The agent's side: claiming slots and buffers, waiting for free ones.
//!
//! A claim is one compare-exchange, so that a claimed buffer names its owner from the first moment,
//! even if the thread dies at once. Generations start at 1; a header whose `owner_generation` is 0
//! is not complete.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::wire::{
    BufferHeader, EXECUTABLE_NAME_BYTES_MAX, MARK_LOOK_BEGUN, NO_SLOT, OWNER_EVENTS, OWNER_NODES,
    PROCESS_CLAIMED, PROCESS_FREE, PROCESS_LIVE, PROCESS_SLOT_COUNT, PUBLISHED_BUSY, ProcessSlot,
    SESSION_RECORDING, THREAD_CLAIMED, THREAD_FREE, THREAD_LIVE, THREAD_SLOT_COUNT, owner_word,
};

use crate::{Pool, forbidden_calls, sys};

/// Longest uninterrupted wait for a buffer, in nanoseconds. A missed wake-up (the recorder died)
/// costs no more than this.
const WAIT_SLICE_NS: u64 = 20_000_000;
/// Time without a heartbeat, in nanoseconds, after which a recorder is dead if its process is gone.
const HEARTBEAT_GONE_NS: u64 = 1_000_000_000;
/// Time without a heartbeat, in nanoseconds, after which a recorder counts as dead even if a
/// process with its id exists. The agent may see another pid namespace.
const HEARTBEAT_LOST_NS: u64 = 30_000_000_000;

/// 1: this process and the recorder share a process namespace, so that the recorder's id is valid
/// here.
static SEES_RECORDER: AtomicU32 = AtomicU32::new(0);

/// Inode of the calling process's process namespace; 0 if /proc cannot be read.
#[must_use]
pub fn process_namespace() -> u32 {
    let mut buffer = [0; 32];
    // `pid:[4026531836]`
    let Ok(link) = sys::read_link(b"/proc/self/ns/pid\0", &mut buffer) else { return 0 };
    let digits = link.iter().filter(|byte| byte.is_ascii_digit());
    digits
        .fold(0_u32, |number, byte| number.wrapping_mul(10).wrapping_add(u32::from(byte.wrapping_sub(b'0'))))
}

/// Facts with which a process registers.
#[derive(Debug, Clone, Copy)]
pub struct ProcessClaim<'a> {
    /// Process id; 0: read it for the caller.
    pub process_id: u32,
    /// Parent's process id; 0: read it for the caller.
    pub parent_id: u32,
    /// `ORIGIN_*`.
    pub origin: u32,
    /// Slot of the process that this one was forked from, or [`NO_SLOT`].
    pub parent_slot: u32,
    /// Ticks since the session's start.
    pub start_ticks: u64,
    /// True if the program has an allocator that the agent does not see.
    pub has_own_malloc: bool,
    /// Path of the program; empty if unknown.
    pub executable: &'a [u8],
}

/// Claim of a slot, with the slot's generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotClaim {
    /// Index of the slot.
    pub index: u32,
    /// Generation of the slot, never 0.
    pub generation: u32,
}

/// Registers the calling process. `None`: no slot is free (counted).
#[must_use]
pub fn claim_process(pool: &Pool, claim: ProcessClaim<'_>) -> Option<SlotClaim> {
    let namespace = process_namespace();
    SEES_RECORDER.store(u32::from(namespace == pool.control().recorder_namespace.load(Relaxed)), Relaxed);
    for index in 0..PROCESS_SLOT_COUNT as u32 {
        let Some(slot) = pool.process_slot(index) else { break };
        if slot.state.load(Relaxed) != PROCESS_FREE
            || slot.state.compare_exchange(PROCESS_FREE, PROCESS_CLAIMED, Acquire, Relaxed).is_err()
        {
            continue;
        }
        let generation = slot.generation.load(Relaxed).wrapping_add(1).max(1);
        let or_asked = |told: u32, ask: fn() -> u32| if told == 0 { ask() } else { told };
        slot.pid.store(or_asked(claim.process_id, sys::process_id), Relaxed);
        slot.parent_pid.store(or_asked(claim.parent_id, sys::parent_process_id), Relaxed);
        slot.origin.store(claim.origin, Relaxed);
        slot.parent_slot.store(claim.parent_slot, Relaxed);
        slot.namespace.store(namespace, Relaxed);
        slot.disable_reason.store(0, Relaxed);
        slot.untraced_exec.store(0, Relaxed);
        slot.has_own_malloc.store(u32::from(claim.has_own_malloc), Relaxed);
        slot.looks_wanted.store(0, Relaxed);
        slot.looks_done.store(0, Relaxed);
        slot.exits_noted.store(0, Relaxed);
        slot.exit_marks.store(0, Relaxed);
        slot.exec_held.store(0, Relaxed);
        slot.own_mappings_avma.store(sys::own_mappings_avma(), Relaxed);
        slot.start_ticks.store(claim.start_ticks, Relaxed);
        slot.executable_name
            .iter()
            .zip(packed_name(claim.executable))
            .for_each(|(word, name)| word.store(name, Relaxed));
        for counter in [&slot.events_lost, &slot.stacks_lost, &slot.verify_count, &slot.verify_mismatch_count]
        {
            counter.store(0, Relaxed);
        }
        slot.generation.store(generation, Relaxed);
        // Release: pairs with the recorder's Acquire of the state; the fields above are complete.
        slot.state.store(PROCESS_LIVE, Release);
        return Some(SlotClaim { index, generation });
    }
    pool.control().processes_refused.fetch_add(1, Relaxed);
    None
}

/// Stores the file name of a started program that is not recorded.
pub fn store_untraced_name(slot: &ProcessSlot, path: &[u8]) {
    slot.untraced_name.iter().zip(packed_name(path)).for_each(|(word, name)| word.store(name, Relaxed));
}

/// Packs the file name of a path for a slot. A name that does not fit gives zeros, because its
/// beginning would be another name.
fn packed_name(path: &[u8]) -> [u64; EXECUTABLE_NAME_BYTES_MAX / 8] {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let name = if name.len() <= EXECUTABLE_NAME_BYTES_MAX { name } else { &[] };
    let mut bytes = name.iter();
    [(); EXECUTABLE_NAME_BYTES_MAX / 8]
        .map(|()| u64::from_le_bytes([0; 8].map(|none| bytes.next().copied().unwrap_or(none))))
}

/// Indices of the thread slots to try, in order. Each slot appears at least once, some a few times
/// more.
///
/// A few threads thus touch few pages. With thousands of threads, whose first windows are full, a
/// start that depends on the thread id keeps the scan short.
fn thread_places(thread_id: u32) -> impl Iterator<Item = u32> {
    const ALL: u32 = THREAD_SLOT_COUNT as u32;
    const _: () = assert!(THREAD_SLOT_COUNT.is_power_of_two(), "a mask takes the place of a division");
    /// Largest slot of each window, and the number of slots tried in it.
    const WINDOWS: [(u32, u32); 4] = [(255, 32), (1023, 32), (4095, 32), (u32::MAX, ALL)];
    let first = thread_id.wrapping_mul(7);
    let of_window = move |(mask, tries): (u32, u32)| {
        (0..tries).map(move |step| first.wrapping_add(step) & mask & (ALL - 1))
    };
    WINDOWS.into_iter().flat_map(of_window)
}

/// Registers the calling thread at a nesting level. `None`: no slot is free (counted).
#[must_use]
pub fn claim_thread(pool: &Pool, process: SlotClaim, thread_id: u32, nested_level: u32) -> Option<SlotClaim> {
    for index in thread_places(thread_id) {
        let Some(slot) = pool.thread_slot(index) else { break };
        if slot.state.load(Relaxed) != THREAD_FREE
            || slot.state.compare_exchange(THREAD_FREE, THREAD_CLAIMED, Acquire, Relaxed).is_err()
        {
            continue;
        }
        let generation = slot.generation.load(Relaxed).wrapping_add(1).max(1);
        slot.process_slot.store(process.index, Relaxed);
        slot.process_generation.store(process.generation, Relaxed);
        slot.tid.store(thread_id, Relaxed);
        slot.nested_level.store(nested_level, Relaxed);
        for counter in [
            &slot.events_lost,
            &slot.wait_count,
            &slot.wait_ns,
            &slot.stack_count,
            &slot.frames_unwound,
            &slot.rule_miss_count,
            &slot.stacks_truncated,
        ] {
            counter.store(0, Relaxed);
        }
        slot.generation.store(generation, Relaxed);
        // Release: pairs with the recorder's Acquire of the state.
        slot.state.store(THREAD_LIVE, Release);
        return Some(SlotClaim { index, generation });
    }
    pool.control().threads_refused.fetch_add(1, Relaxed);
    None
}

/// Purpose of a claimed buffer.
#[derive(Debug, Clone, Copy)]
pub enum BufferUse {
    /// Event records of one thread.
    Events {
        /// Slot of the thread.
        thread: SlotClaim,
        /// Number of the buffer among those of the thread, from 0.
        sequence: u64,
    },
    /// Stack nodes of one process.
    Nodes {
        /// Slot of the process.
        process: SlotClaim,
        /// Number of the block among those of the process, from 0.
        block: u32,
    },
}

/// Claims the first free buffer, so that a lightly used pool touches little memory. `None`: all are
/// in use, or the rest is reserved for events.
///
/// Wakes the recorder when more than half of the buffers are in use, or when it should open more.
#[must_use]
pub fn claim_buffer(pool: &Pool, purpose: BufferUse, ticks: u64) -> Option<u32> {
    let (owner, generation, first_node) = match purpose {
        BufferUse::Events { thread, sequence } => {
            (owner_word(OWNER_EVENTS, thread.index, sequence), thread.generation, 0)
        }
        BufferUse::Nodes { process, block } => (
            owner_word(OWNER_NODES, process.index, u64::from(block)),
            process.generation,
            block.wrapping_mul(pool.nodes_per_block() as u32),
        ),
    };
    for index in 0..pool.claimable_count() as u32 {
        let Some(header) = pool.buffer_header(index) else { break };
        if header.owner.load(Relaxed) != 0
            || header.owner.compare_exchange(0, owner, AcqRel, Relaxed).is_err()
        {
            continue;
        }
        header.first_node.store(first_node, Relaxed);
        header.claimed_ticks.store(ticks, Relaxed);
        if let (BufferUse::Nodes { .. }, Some(nodes)) = (purpose, pool.buffer_nodes(index)) {
            // Stale content must not be read as nodes.
            for node in nodes {
                node.return_address.store(0, Relaxed);
            }
        }
        // Release: pairs with the recorder's Acquire; a header with a generation is complete.
        header.owner_generation.store(generation, Release);
        let held = pool.control().buffers_held.fetch_add(1, Relaxed).wrapping_add(1);
        let claimed = pool.control().buffers_claimed.fetch_add(1, Relaxed).wrapping_add(1);
        if is_to_be_opened(pool, claimed as usize) || claimed as usize > pool.limit_count() / 2 {
            wake_recorder(pool);
        }
        if matches!(purpose, BufferUse::Nodes { .. }) && !leaves_some(pool, held) {
            unclaim_buffer(pool, index);
            return None;
        }
        return Some(index);
    }
    wake_recorder(pool);
    None
}

/// True if the recorder should open more buffers at this number of claimed ones, before threads
/// must wait.
#[must_use]
pub fn is_to_be_opened(pool: &Pool, claimed_count: usize) -> bool {
    let open_count = pool.claimable_count();
    claimed_count > open_count / 4 && open_count < pool.limit_count()
}

/// Returns an unused buffer.
pub fn unclaim_buffer(pool: &Pool, index: u32) {
    if let Some(header) = pool.buffer_header(index) {
        header.owner_generation.store(0, Relaxed);
        pool.control().buffers_claimed.fetch_sub(1, Relaxed);
        let_go(pool);
        // Release: the next claimer sees the header cleared.
        header.owner.store(0, Release);
    }
}

/// Marks an event as being written behind `words` words, before its time is read.
#[inline(always)]
pub fn begin_event(header: &BufferHeader, words: u32) {
    // Release: a reader of this word also sees the words before it.
    header.published.store((words * 8) | PUBLISHED_BUSY, Release);
}

/// Publishes the first `words` words. `closing`: 0, or [`PUBLISHED_CLOSED`].
#[inline(always)]
pub fn publish(header: &BufferHeader, words: u32, closing: u32) {
    // Release: pairs with the recorder's Acquire of `published`.
    header.published.store((words * 8) | closing, Release);
}

/// Closes a buffer of events: no more records follow.
pub fn close_buffer(pool: &Pool, header: &BufferHeader) {
    // Release: after the last record.
    header.closed.store(1, Release);
    let_go(pool);
}

/// Subtracts a buffer from the number of held ones: it is closed, or closes with its first record.
pub fn let_go(pool: &Pool) {
    pool.control().buffers_held.fetch_sub(1, Relaxed);
}

/// True if more than three quarters of the buffers are held, so that a new event buffer should be
/// closed with its first record. Otherwise idle threads might hold all buffers, and all other
/// threads would wait for ever.
#[must_use]
pub fn is_to_pass_on(pool: &Pool) -> bool {
    let held = count_of(pool.control().buffers_held.load(Relaxed));
    held.saturating_mul(4) > pool.limit_count().saturating_mul(3)
}

/// True if one more buffer may be claimed for nodes. The last sixteenth is reserved for events.
#[must_use]
pub fn may_hold_nodes(pool: &Pool) -> bool {
    leaves_some(pool, pool.control().buffers_held.load(Relaxed).wrapping_add(1))
}

/// Number of searches for ended processes that the recorder has finished.
#[must_use]
pub fn ends_looked_for(pool: &Pool) -> u32 {
    // Acquire: pairs with the Release in the recorder, which has subtracted the freed buffers from
    // the number held.
    pool.control().ends_looked_for.load(Acquire)
}

/// True if a thread has lately waited in vain for a node buffer. Others then need not wait, because
/// idle owners may stay idle for long. "Lately" is within a hundred of the recorder's searches: ten
/// seconds, or one while threads wait.
#[must_use]
pub fn was_waited_in_vain(pool: &Pool) -> bool {
    const LATELY_LOOKS: u32 = 100;
    let given_up = pool.control().nodes_waited_in_vain.load(Relaxed);
    given_up != 0 && ends_looked_for(pool).wrapping_sub(given_up) < LATELY_LOOKS
}

/// Announces to other threads a vain wait for a node buffer.
pub fn note_waited_in_vain(pool: &Pool) {
    pool.control().nodes_waited_in_vain.store(ends_looked_for(pool), Relaxed);
}

fn leaves_some(pool: &Pool, held: u32) -> bool {
    count_of(held) + (pool.limit_count() / 16).max(1) <= pool.limit_count()
}

/// The count is below zero for a moment if the recorder counts a buffer as closed before its owner
/// subtracts it.
fn count_of(held: u32) -> usize {
    held.cast_signed().max(0) as usize
}

/// Wakes the recorder if it sleeps.
pub(crate) fn wake_recorder(pool: &Pool) {
    let word = &pool.control().recorder_sleeping;
    if word.load(Relaxed) == 1 && word.swap(0, AcqRel) == 1 {
        sys::futex_wake(word, 1);
    }
}

/// Longest wait for an inspection in progress, in nanoseconds.
const SLOW_LOOK_NS: u64 = 40_000_000_000;

/// Recorder id and heartbeat of a request that got no answer: the recorder may have been killed. No
/// thread waits for it again before its next heartbeat. 0: no such request.
static UNANSWERED: AtomicU64 = AtomicU64::new(0);

/// Requests an inspection of the process's modules by the recorder. Waits until it is done, the
/// session ends, or `limit_ns` has passed. With `waits_on`, waits longer while the inspection is in
/// progress.
///
/// A killed recorder costs one wait, until it is seen to be gone.
pub fn ask_for_look(pool: &Pool, slot: &ProcessSlot, limit_ns: u64, waits_on: bool) {
    let control = pool.control();
    let (recorder, first_beat) = (control.recorder_pid.load(Relaxed), control.heartbeat.load(Relaxed));
    let unanswered = u64::from(recorder) << 32 | u64::from(first_beat);
    let wanted = slot.looks_wanted.fetch_add(1, AcqRel).wrapping_add(1);
    control.looks_wanted.fetch_add(1, AcqRel);
    sys::futex_wake(&control.looks_wanted, 1);
    let mut watch = Stopwatch::start();
    let is_begun = || waits_on && slot.exit_marks.load(Relaxed) & MARK_LOOK_BEGUN != 0;
    let (mut is_in_time, mut last_beat, mut beat_ns) = (true, 0, 0);
    while control.state.load(Relaxed) == SESSION_RECORDING && is_in_time {
        let done = slot.looks_done.load(Acquire);
        if done.wrapping_sub(wanted) as i32 >= 0 || UNANSWERED.load(Relaxed) == unanswered {
            return;
        }
        sys::futex_wait(&slot.looks_done, done, WAIT_SLICE_NS);
        watch.slice_count = watch.slice_count.wrapping_add(1);
        let waited_ns = watch.ns();
        let beat = control.heartbeat.load(Relaxed);
        if beat != last_beat {
            (last_beat, beat_ns) = (beat, waited_ns);
        }
        // The inspection makes progress only while the recorder lives.
        let is_alive = waited_ns.saturating_sub(beat_ns) < limit_ns;
        is_in_time = waited_ns < limit_ns || is_begun() && is_alive && waited_ns < SLOW_LOOK_NS;
        let is_gone = SEES_RECORDER.load(Relaxed) != 0 && !sys::process_exists(recorder);
        if beat == first_beat && (is_gone || !is_in_time) {
            UNANSWERED.store(unanswered, Relaxed);
            return;
        }
    }
}

/// Outcome of a wait for a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The recorder has freed buffers; the claim can be retried.
    Freed,
    /// The recorder has closed the session.
    Closed,
    /// The recorder shows no sign of life.
    Dead,
}

/// Duration of a wait: by the clock, or by the number of expired slices if the program may not read
/// the time.
#[derive(Debug)]
struct Stopwatch {
    start_ns: u64,
    slice_count: u64,
}

impl Stopwatch {
    fn start() -> Self {
        Self { start_ns: sys::monotonic_ns(), slice_count: 0 }
    }

    fn ns(&self) -> u64 {
        if forbidden_calls::has_clock() {
            sys::monotonic_ns().saturating_sub(self.start_ns)
        } else {
            self.slice_count.wrapping_mul(WAIT_SLICE_NS)
        }
    }
}

/// Waits until the recorder frees a buffer (`--on-full block`). Calls `try_claim` after each wake,
/// with the nanoseconds waited so far.
///
/// # Errors
/// Returns the reason why no buffer will become free.
pub fn wait_for<T>(pool: &Pool, mut try_claim: impl FnMut(u64) -> Option<T>) -> Result<T, WaitOutcome> {
    let control = pool.control();
    let mut last_beat = control.heartbeat.load(Relaxed);
    let mut watch = Stopwatch::start();
    let mut beat_ns = 0;
    control.waiter_count.fetch_add(1, Relaxed);
    let outcome = loop {
        let generation = control.freed_generation.load(Acquire);
        if control.state.load(Relaxed) != SESSION_RECORDING {
            break Err(WaitOutcome::Closed);
        }
        if let Some(claimed) = try_claim(watch.ns()) {
            break Ok(claimed);
        }
        wake_recorder(pool);
        sys::futex_wait(&control.freed_generation, generation, WAIT_SLICE_NS);
        let is_freed = control.freed_generation.load(Relaxed) != generation;
        watch.slice_count = watch.slice_count.wrapping_add(u64::from(!is_freed));
        let now_ns = watch.ns();
        let beat = control.heartbeat.load(Relaxed);
        if beat != last_beat {
            last_beat = beat;
            beat_ns = now_ns;
            continue;
        }
        let silent_ns = now_ns.saturating_sub(beat_ns);
        let is_gone = silent_ns > HEARTBEAT_GONE_NS
            && SEES_RECORDER.load(Relaxed) != 0
            && !sys::process_exists(control.recorder_pid.load(Relaxed));
        if is_gone || silent_ns > HEARTBEAT_LOST_NS {
            break Err(WaitOutcome::Dead);
        }
    };
    control.waiter_count.fetch_sub(1, Relaxed);
    outcome
}

/// Slot claim that stands for the absence of a slot.
pub const NO_CLAIM: SlotClaim = SlotClaim { index: NO_SLOT, generation: 0 };

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_thread_tries_all_slots_and_few_threads_touch_few_pages() {
        for thread_id in [1, 4711, u32::MAX] {
            let tried: HashSet<u32> = thread_places(thread_id).collect();
            assert_eq!(tried.len(), THREAD_SLOT_COUNT, "{thread_id}");
            assert!(thread_places(thread_id).take(32).all(|index| index < 256), "{thread_id}");
        }
    }
}
