//! Bounds of a thread's stack, from the thread's descriptor.
//!
//! ```text
//!  block of the stack                                            its end
//!  | guard | not in use |sp ... frames ... | static TLS | descriptor |
//!                                                       ^ pointer    block and size stand somewhere in it
//! ```
//! The descriptor's size and layout differ between versions of the C library: the two words are
//! searched for. They are the only pair of words that is a range of pages with the descriptor in
//! it.

use heapr_known::glibc::{SELF_OFFSET, THREAD_ID_OFFSET, find_descriptor};
use heapr_proc::page_bytes;

use crate::memory::Memory;

/// Upper bound of the descriptor's size in all versions.
const DESCRIPTOR_BYTES: usize = 4096;

/// The block of a thread's stack with its descriptor at `thread_pointer`. `None` for the first
/// thread, whose stack the kernel made, and for threads that are not pthreads.
pub(crate) fn stack_block(memory: &impl Memory, thread_pointer: u64) -> Option<(u64, u64)> {
    let mut bytes = [0; DESCRIPTOR_BYTES];
    // The descriptor may end with its page.
    let count = memory.read(thread_pointer, &mut bytes);
    let words = bytes[..count].as_chunks::<8>().0;
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    is_descriptor(&words, thread_pointer).then_some(())?;
    words.windows(2).find_map(|pair| {
        let &[start_avma, bytes] = pair else { return None };
        // The first thread has 0 there.
        let is_of_pages = start_avma != 0 && start_avma % page_bytes() == 0 && bytes % page_bytes() == 0;
        let end_avma = start_avma.checked_add(bytes)?;
        // The descriptor lies at the end, as near as alignment allows.
        let is_at_end = start_avma < thread_pointer
            && thread_pointer < end_avma
            && end_avma - thread_pointer <= 2 * DESCRIPTOR_BYTES as u64;
        (is_of_pages && is_at_end).then_some((start_avma, end_avma))
    })
}

/// Whether the words are a descriptor: the first and the third are its own address.
fn is_descriptor(words: &[u64], thread_pointer: u64) -> bool {
    words.first() == Some(&thread_pointer) && words.get(SELF_OFFSET / 8) == Some(&thread_pointer)
}

/// Finds the descriptors of threads that have ended.
pub(crate) struct Descriptors {
    live: Vec<u64>,
}

/// An ended thread whose stack is still mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndedThread {
    pub(crate) thread_pointer: u64,
    /// Range of its stack, with the descriptor.
    pub(crate) block: (u64, u64),
    /// Whether the thread is joined or detached: its result is dead.
    pub(crate) is_done: bool,
}

/// Bytes before the end of a stack's block in which a descriptor begins.
const SEARCHED_BYTES: usize = 2 * DESCRIPTOR_BYTES;

impl Descriptors {
    /// `live`: descriptor and thread id of each live thread. `None` if fewer than half of these
    /// hold a plausible id: then [`THREAD_ID_OFFSET`] is not trusted.
    pub(crate) fn of(memory: &impl Memory, live: &[(u64, u32)]) -> Option<Self> {
        let tid = |thread_pointer: u64| tid_of(memory, thread_pointer);
        // In another pid namespace the id differs, but is neither 0 nor -1.
        let is_told = |&&(thread_pointer, _): &&(u64, u32)| {
            tid(thread_pointer).is_some_and(|tid| tid > 0 && tid < 1 << 23)
        };
        let told_count = live.iter().filter(is_told).count();
        (told_count > 0 && told_count * 2 >= live.len())
            .then(|| Self { live: live.iter().map(|&(thread_pointer, _)| thread_pointer).collect() })
    }

    /// The ended thread whose stack's block ends at an address.
    pub(crate) fn ended_before(&self, memory: &impl Memory, end_avma: u64) -> Option<EndedThread> {
        let start_avma = end_avma.checked_sub(SEARCHED_BYTES as u64)?;
        let mut bytes = [0; SEARCHED_BYTES];
        if memory.read(start_avma, &mut bytes) != bytes.len() {
            return None;
        }
        let thread_pointer = find_descriptor(start_avma, &bytes)?;
        let at = (thread_pointer - start_avma) as usize;
        let word = |at: usize| {
            let bytes = bytes.get(at..at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
        };
        if self.live.contains(&thread_pointer) {
            return None;
        }
        let block = stack_block(memory, thread_pointer)?;
        let tid = tid_of(memory, thread_pointer)?;
        // A detached thread is its own joiner.
        let is_detached =
            (at + 24..SEARCHED_BYTES).step_by(8).any(|place| word(place) == Some(thread_pointer));
        match tid {
            -1 => Some(EndedThread { thread_pointer, block, is_done: true }),
            0 => Some(EndedThread { thread_pointer, block, is_done: is_detached }),
            _ => None,
        }
    }
}

fn tid_of(memory: &impl Memory, thread_pointer: u64) -> Option<i32> {
    let word = memory.word(thread_pointer.wrapping_add(THREAD_ID_OFFSET as u64))?;
    Some(word as u32 as i32)
}
