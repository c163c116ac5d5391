//! The recorder's side: scanning, reading untrusted records, freeing.
//!
//! All content may have been written by a hostile process. The only assumption is that the pages
//! are mapped.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::wire::{
    EXECUTABLE_NAME_BYTES_MAX, NODE_ADDRESS_MASK, OWNER_EVENTS, OWNER_NODES, PUBLISHED_BUSY,
    PUBLISHED_CLOSED, ProcessSlot, SESSION_CLOSED, split_owner,
};

use crate::{Pool, PoolError, sys};

/// A claimed buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimedBuffer {
    /// Number of the buffer.
    pub index: u32,
    /// Content of the buffer.
    pub content: Content,
    /// Thread slot (events) or process slot (nodes); may be out of range.
    pub slot: u32,
    /// Generation of the slot at the claim.
    pub generation: u32,
    /// Number of the buffer (events) or block (nodes) among those of the owner.
    pub sequence: u64,
    /// Ticks at the claim, as the agent states them.
    pub claimed_ticks: u64,
}

/// Content of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Event records.
    Events {
        /// Number of published words, at most the size of the buffer.
        words: usize,
        /// An event is being written: its time may be earlier than the present.
        is_busy: bool,
        /// The owner writes no more into the buffer.
        is_closed: bool,
    },
    /// Stack nodes.
    Nodes {
        /// Number of the first node.
        first_node: u32,
    },
}

/// File name of a process's program from its slot, padded with zeros: see
/// [`ProcessSlot::executable_name`]. Any bytes are possible.
#[must_use]
pub fn executable_name(slot: &ProcessSlot) -> [u8; EXECUTABLE_NAME_BYTES_MAX] {
    unpacked(slot.executable_name.iter().map(|word| word.load(Relaxed)))
}

/// File name of the untraced program that a process started: see [`ProcessSlot::untraced_name`].
/// Any bytes are possible.
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

/// Claimed buffers whose headers are complete, in order of their numbers.
pub fn claimed_buffers(pool: &Pool) -> impl Iterator<Item = ClaimedBuffer> + '_ {
    (0..pool.buffer_count() as u32).filter_map(|index| claimed_buffer(pool, index))
}

/// State of buffer `index`, if it is claimed.
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
            // `closed` is read before `published`: a closed buffer is published in full.
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
    // An agent may have given the buffer back since (see `unclaim_buffer`), and another one claimed
    // it.
    if generation == 0 || header.owner.load(Acquire) != owner {
        return None;
    }
    Some(ClaimedBuffer { index, content, slot, generation, sequence, claimed_ticks })
}

/// Frees a buffer whose owner word has an unknown kind, and returns whether it had one. No agent
/// writes such a word, so that no owner would ever give the buffer back.
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
    /// Number of the caller's node; any value is possible.
    pub parent: u32,
    /// Return address.
    pub return_address: u64,
}

/// Node `place` of the node block in buffer `index`; `None` if it is not written yet.
#[must_use]
pub fn node(pool: &Pool, index: u32, place: usize) -> Option<RawNode> {
    let node = pool.buffer_nodes(index)?.get(place)?;
    // Acquire: pairs with the Release in the agent; the parent is complete.
    let return_address = node.return_address.load(Acquire) & NODE_ADDRESS_MASK;
    (return_address != 0).then(|| RawNode { parent: node.parent.load(Relaxed), return_address })
}

/// Opens buffers up to number `count`, with memory of the caller's, and wakes agents that wait for
/// one.
///
/// # Errors
/// Returns an error if the kernel has no memory.
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

/// Frees a buffer. The caller has read all of it.
pub fn free_buffer(pool: &Pool, index: u32) {
    let Some(header) = pool.buffer_header(index) else { return };
    header.published.store(0, Relaxed);
    header.closed.store(0, Relaxed);
    header.owner_generation.store(0, Relaxed);
    // Release: the next claimer sees the header cleared.
    header.owner.store(0, Release);
}

/// Frees a buffer that counts as held (of nodes, or of events and not closed). The caller has read
/// all of it.
pub fn free_held_buffer(pool: &Pool, index: u32) {
    pool.control().buffers_held.fetch_sub(1, Relaxed);
    free_buffer(pool, index);
}

/// Sets the number of claimed buffers to the count of a scan. Agents add each further claim.
pub fn note_claimed(pool: &Pool, claimed_count: u32) {
    pool.control().buffers_claimed.store(claimed_count, Relaxed);
}

/// Number of held buffers, as far as is known. A scan reads it before it begins: see [`note_held`].
#[must_use]
pub fn held_count(pool: &Pool) -> u32 {
    pool.control().buffers_held.load(Relaxed)
}

/// Corrects the number of held buffers by the count of a scan; `before` is the number at its
/// beginning. Buffers that agents claimed meanwhile stay counted, at worst twice until the next
/// scan.
pub fn note_held(pool: &Pool, before: u32, counted: u32) {
    pool.control().buffers_held.fetch_add(counted.wrapping_sub(before), Relaxed);
}

/// Increments the heartbeat. If buffers were freed, subtracts them from the count and wakes agents
/// that wait for one.
pub fn finish_slice(pool: &Pool, freed_count: u32) {
    let control = pool.control();
    control.heartbeat.fetch_add(1, Relaxed);
    if freed_count > 0 {
        control.buffers_claimed.fetch_sub(freed_count, Relaxed);
        wake_waiters(pool);
    }
}

/// Announces to waiting agents that a search for ended processes has finished.
pub fn note_ends_looked_for(pool: &Pool) {
    // Release: after the buffers freed by the search were subtracted from the number held.
    pool.control().ends_looked_for.fetch_add(1, Release);
}

/// Sleeps until an agent wakes the recorder or the time-out passes.
pub fn sleep(pool: &Pool, timeout_ns: u64) {
    let word = &pool.control().recorder_sleeping;
    if word.swap(1, AcqRel) != RUNG {
        sys::futex_wait(word, 1, timeout_ns);
    }
    word.swap(0, AcqRel);
}

/// Value of `recorder_sleeping` instead of 0 or 1: the recorder's own process has woken it, or
/// keeps it from its next sleep.
const RUNG: u32 = 2;

/// Wakes a sleeping recorder, or keeps one awake that is about to sleep.
pub fn wake(pool: &Pool) {
    let word = &pool.control().recorder_sleeping;
    word.swap(RUNG, AcqRel);
    sys::futex_wake(word, 1);
}

/// Closes the session, and wakes all agents that wait for a buffer.
pub fn close_session(pool: &Pool) {
    let control = pool.control();
    control.state.store(SESSION_CLOSED, Release);
    control.freed_generation.fetch_add(1, Release);
    sys::futex_wake(&control.freed_generation, i32::MAX as u32);
}
