//! Where the stack of a thread lies, told by the thread's descriptor.
//!
//! ```text
//!  block of the stack                                            its end
//!  | guard | not in use |sp ... frames ... | static TLS | descriptor |
//!                                                       ^ fs base    block and size stand somewhere in it
//! ```
//! Neither the descriptor's size nor the place of anything in it is the same in all versions of the
//! C library: so the two words are looked for. A thread's block holds its descriptor, which no
//! other pair of words does that could be a range of pages.

use crate::memory::Memory;

const PAGE_BYTES: u64 = 4096;
/// More than any version's descriptor has.
const DESCRIPTOR_BYTES: usize = 4096;

/// The block that a thread's stack lies in, with its descriptor at `thread_pointer`; `None` for the
/// first thread, whose stack the kernel has made, and for threads that are no pthreads.
pub(crate) fn stack_block(memory: &impl Memory, thread_pointer: u64) -> Option<(u64, u64)> {
    let mut bytes = [0; DESCRIPTOR_BYTES];
    // It may end with its page.
    let count = memory.read(thread_pointer, &mut bytes);
    let words = bytes[..count].as_chunks::<8>().0;
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    is_descriptor(&words, thread_pointer).then_some(())?;
    words.windows(2).find_map(|pair| {
        let &[start_avma, bytes] = pair else { return None };
        // (The first thread has 0 there.)
        let is_of_pages = start_avma != 0 && start_avma % PAGE_BYTES == 0 && bytes % PAGE_BYTES == 0;
        let end_avma = start_avma.checked_add(bytes)?;
        // The descriptor is at its end, as near as alignment allows.
        let is_at_end = start_avma < thread_pointer
            && thread_pointer < end_avma
            && end_avma - thread_pointer <= 2 * DESCRIPTOR_BYTES as u64;
        (is_of_pages && is_at_end).then_some((start_avma, end_avma))
    })
}

/// A descriptor begins with its own address, and has it again as its third word.
fn is_descriptor(words: &[u64], thread_pointer: u64) -> bool {
    words.first() == Some(&thread_pointer) && words.get(2) == Some(&thread_pointer)
}

/// Descriptors of threads that have ended.
pub(crate) struct Descriptors {
    live: Vec<u64>,
}

/// A thread that has ended and whose stack is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndedThread {
    pub(crate) thread_pointer: u64,
    /// Of its stack, with the descriptor.
    pub(crate) block: (u64, u64),
    /// Nobody will ask for what it has left.
    pub(crate) is_done: bool,
}

/// Where a descriptor has its thread's number: the same in all versions on this processor; looked
/// at in a living thread first.
const TID_OFFSET: u64 = 720;
/// Before the end of a stack's block, in which a descriptor begins.
const SEARCHED_BYTES: usize = 2 * DESCRIPTOR_BYTES;
/// Descriptors are aligned so.
const DESCRIPTOR_ALIGNMENT: usize = 64;

impl Descriptors {
    /// `live`: descriptor and number of each living thread. `None` if these do not say what they
    /// should: then nothing is to be made of others.
    pub(crate) fn of(memory: &impl Memory, live: &[(u64, u32)]) -> Option<Self> {
        let tid = |thread_pointer: u64| tid_of(memory, thread_pointer);
        // (In another namespace it has another number, but not 0 and not -1.)
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
        let word = |at: usize| {
            let bytes = bytes.get(at..at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
        };
        let places = (0..SEARCHED_BYTES).step_by(DESCRIPTOR_ALIGNMENT);
        let at = places.into_iter().find(|&at| {
            let own_avma = start_avma + at as u64;
            word(at) == Some(own_avma) && word(at + 16) == Some(own_avma)
        })?;
        let thread_pointer = start_avma + at as u64;
        if self.live.contains(&thread_pointer) {
            return None;
        }
        let block = stack_block(memory, thread_pointer)?;
        let tid = tid_of(memory, thread_pointer)?;
        // One that is its own waiter is waited for by nobody.
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
    let word = memory.word(thread_pointer.wrapping_add(TID_OFFSET))?;
    Some(word as u32 as i32)
}
