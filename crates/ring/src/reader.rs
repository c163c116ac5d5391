//! The recorder's side: scanning, reading untrusted records, freeing.
//!
//! Everything here may have been written by a hostile process: nothing is assumed of it but that it
//! is there.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::wire::{
    EXECUTABLE_NAME_BYTES_MAX, NODE_ADDRESS_MASK, OWNER_EVENTS, OWNER_NODES, PUBLISHED_BUSY,
    PUBLISHED_CLOSED, ProcessSlot, SESSION_CLOSED, split_owner,
};

use crate::{Pool, PoolError, sys};

/// A buffer that somebody has claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedBuffer {
    /// Its number.
    pub index: u32,
    /// What it is for.
    pub content: Content,
    /// Thread slot (events) or process slot (nodes); may be out of range.
    pub slot: u32,
    /// Generation of that slot at the claim.
    pub generation: u32,
    /// Number of the buffer (events) or block (nodes) among the owner's.
    pub sequence: u64,
    /// Ticks at the claim, as the agent says.
    pub claimed_ticks: u64,
}

/// What a buffer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Event records.
    Events {
        /// Words published, at most as many as the buffer has.
        words: usize,
        /// An event is being written: its time may be earlier than now.
        is_busy: bool,
        /// Nothing more will come.
        is_closed: bool,
    },
    /// Stack nodes.
    Nodes {
        /// Number of the first.
        first_node: u32,
    },
}

/// File name of a process's program as its slot tells it, with zeros behind it: see
/// [`ProcessSlot::executable_name`]. Any bytes.
#[must_use]
pub fn executable_name(slot: &ProcessSlot) -> [u8; EXECUTABLE_NAME_BYTES_MAX] {
    unpacked(slot.executable_name.iter().map(|word| word.load(Relaxed)))
}

/// That of a program that it started and that is not recorded. Any bytes.
#[must_use]
pub fn untraced_name(slot: &ProcessSlot) -> [u8; EXECUTABLE_NAME_BYTES_MAX] {
    unpacked(slot.untraced_name.iter().map(|word| word.load(Relaxed)))
}

fn unpacked(words: impl Iterator<Item = u64>) -> [u8; EXECUTABLE_NAME_BYTES_MAX] {
    let mut bytes = [0; EXECUTABLE_NAME_BYTES_MAX];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The claimed buffers whose headers are complete, in order of their numbers.
pub fn claimed_buffers(pool: &Pool) -> impl Iterator<Item = ClaimedBuffer> + '_ {
    (0..pool.buffer_count() as u32).filter_map(|index| claimed_buffer(pool, index))
}

/// The state of buffer `index`, if it is claimed.
#[must_use]
pub fn claimed_buffer(pool: &Pool, index: u32) -> Option<ClaimedBuffer> {
    let header = pool.buffer_header(index)?;
    let owner = header.owner.load(Acquire);
    if owner == 0 {
        return None;
    }
    // Acquire: pairs with the Release in `claim_buffer`.
    let generation = header.owner_generation.load(Acquire);
    let (kind, slot, sequence) = split_owner(owner);
    let content = match kind {
        OWNER_EVENTS => {
            // `closed` before `published`: what is closed is published in full.
            let is_closed = header.closed.load(Acquire) == 1;
            let published = header.published.load(Acquire);
            let is_closed = is_closed || published & PUBLISHED_CLOSED != 0;
            let words = (published as usize / 8).min(pool.buffer_bytes() / 8);
            Content::Events { words, is_busy: published & PUBLISHED_BUSY != 0, is_closed }
        }
        OWNER_NODES => Content::Nodes { first_node: header.first_node.load(Relaxed) },
        _ => return None,
    };
    let claimed_ticks = header.claimed_ticks.load(Relaxed);
    // An agent may have given the buffer back since (see `unclaim_buffer`), and another claimed it.
    if generation == 0 || header.owner.load(Acquire) != owner {
        return None;
    }
    Some(ClaimedBuffer { index, content, slot, generation, sequence, claimed_ticks })
}

/// Makes a buffer free that is claimed for nothing that there is. Whether it was: no agent claims
/// one so, and nobody would ever give it back.
pub fn free_if_senseless(pool: &Pool, index: u32) -> bool {
    let Some(header) = pool.buffer_header(index) else { return false };
    let owner = header.owner.load(Acquire);
    let (kind, _, _) = split_owner(owner);
    let is_senseless = owner != 0 && !matches!(kind, OWNER_EVENTS | OWNER_NODES);
    if is_senseless {
        free_buffer(pool, index);
    }
    is_senseless
}

/// Word `place` of buffer `index`.
#[inline(always)]
#[must_use]
pub fn word(pool: &Pool, index: u32, place: usize) -> Option<u64> {
    pool.buffer_words(index)?.get(place).map(|word| word.load(Relaxed))
}

/// A stack node as an agent wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawNode {
    /// Number of the caller's node; anything.
    pub parent: u32,
    /// Return address.
    pub return_address: u64,
}

/// Node `place` of node block `index`; `None` if it is not written yet.
#[must_use]
pub fn node(pool: &Pool, index: u32, place: usize) -> Option<RawNode> {
    let node = pool.buffer_nodes(index)?.get(place)?;
    // Acquire: pairs with the Release in the agent; the parent is complete.
    let return_address = node.return_address.load(Acquire) & NODE_ADDRESS_MASK;
    (return_address != 0).then(|| RawNode { parent: node.parent.load(Relaxed), return_address })
}

/// Opens buffers up to this number, with memory of the caller's, and wakes agents that wait for
/// one.
///
/// # Errors
/// The kernel has no memory.
pub fn open_buffers(pool: &Pool, descriptor: &sys::Descriptor, count: usize) -> Result<(), PoolError> {
    pool.open_up_to(descriptor, count)?;
    wake_waiters(pool);
    Ok(())
}

fn wake_waiters(pool: &Pool) {
    let control = pool.control();
    control.freed_generation.fetch_add(1, Release);
    if control.waiter_count.load(Relaxed) != 0 {
        sys::futex_wake(&control.freed_generation, i32::MAX as u32);
    }
}

/// Makes a buffer free. The caller has read all of it.
pub fn free_buffer(pool: &Pool, index: u32) {
    let Some(header) = pool.buffer_header(index) else { return };
    header.published.store(0, Relaxed);
    header.closed.store(0, Relaxed);
    header.owner_generation.store(0, Relaxed);
    // Release: whoever claims it sees the header cleared.
    header.owner.store(0, Release);
}

/// Makes a buffer free that was held: of nodes, or of events and not closed. The caller has read
/// all of it.
pub fn free_held_buffer(pool: &Pool, index: u32) {
    pool.control().buffers_held.fetch_sub(1, Relaxed);
    free_buffer(pool, index);
}

/// Sets how many buffers are claimed, as a scan has counted them. (Agents add theirs as they claim
/// them.)
pub fn note_claimed(pool: &Pool, claimed_count: u32) {
    pool.control().buffers_claimed.store(claimed_count, Relaxed);
}

/// How many buffers are held, as far as is known: to be asked before a scan.
#[must_use]
pub fn held_count(pool: &Pool) -> u32 {
    pool.control().buffers_held.load(Relaxed)
}

/// Corrects how many buffers are held by what a scan has counted; `before` it there were so many.
/// (What agents have claimed meanwhile stays counted, at worst twice until the next scan.)
pub fn note_held(pool: &Pool, before: u32, counted: u32) {
    pool.control().buffers_held.fetch_add(counted.wrapping_sub(before), Relaxed);
}

/// Gives a sign of life, and, if buffers were freed, takes them off the count and wakes agents that
/// wait for one.
pub fn finish_slice(pool: &Pool, freed_count: u32) {
    let control = pool.control();
    control.heartbeat.fetch_add(1, Relaxed);
    if freed_count > 0 {
        control.buffers_claimed.fetch_sub(freed_count, Relaxed);
        wake_waiters(pool);
    }
}

/// Tells waiting agents that it was looked which processes have ended.
pub fn note_ends_looked_for(pool: &Pool) {
    // Release: after what was freed then has been taken off the count of those that are held.
    pool.control().ends_looked_for.fetch_add(1, Release);
}

/// Sleeps until an agent wakes the recorder or the time is up.
pub fn sleep(pool: &Pool, timeout_ns: u64) {
    let word = &pool.control().recorder_sleeping;
    if word.swap(1, AcqRel) != RUNG {
        sys::futex_wait(word, 1, timeout_ns);
    }
    word.swap(0, AcqRel);
}

/// In place of whether it sleeps: its own process has woken it, or does before it sleeps.
const RUNG: u32 = 2;

/// Wakes a recorder that sleeps, and keeps one awake that is about to.
pub fn wake(pool: &Pool) {
    let word = &pool.control().recorder_sleeping;
    word.swap(RUNG, AcqRel);
    sys::futex_wake(word, 1);
}

/// Tells all agents that nobody records any more.
pub fn close_session(pool: &Pool) {
    let control = pool.control();
    control.state.store(SESSION_CLOSED, Release);
    control.freed_generation.fetch_add(1, Release);
    sys::futex_wake(&control.freed_generation, i32::MAX as u32);
}
