//! Bounds of a thread's stack, from the thread's descriptor.
//!
//! ```text
//!  block of the stack                                            its end
//!  | guard | not in use |sp ... frames ... | static TLS | descriptor |
//!                                                         block and size stand somewhere in it
//! ```
//! On other processors the static TLS is the last. The descriptor's size and layout differ between
//! versions of the C library: the two words are searched for. They are the only pair of words that
//! is a range of pages with the descriptor in it.

use heapr_known::machine::ThreadDescriptor;
use heapr_proc::page_bytes;

use crate::memory::Memory;

/// Upper bound of the descriptor's size in all versions.
const DESCRIPTOR_BYTES: usize = 4096;

/// A thread's stack that the C library made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackBlock {
    pub(crate) start_avma: u64,
    /// Address of the thread's descriptor, above which no frames lie.
    pub(crate) descriptor_avma: u64,
    pub(crate) end_avma: u64,
}

/// The descriptor of the thread with a thread pointer. `None` for threads that are not pthreads.
fn descriptor_of(kind: &ThreadDescriptor, memory: &impl Memory, thread_pointer: u64) -> Option<u64> {
    if kind.begins_below == 0 {
        let bytes = bytes_at(memory, thread_pointer);
        return kind.is_at(thread_pointer, &bytes).then_some(thread_pointer);
    }
    let start_avma = thread_pointer.checked_sub(kind.begins_below)?;
    // Below a small descriptor lies memory of the thread, where an old one may stand.
    kind.all_in(start_avma, &bytes_at(memory, start_avma)).rfind(|avma| *avma < thread_pointer)
}

/// Bytes at an address, as many as can be read of a descriptor.
fn bytes_at(memory: &impl Memory, start_avma: u64) -> Vec<u8> {
    let mut bytes = vec![0; DESCRIPTOR_BYTES];
    // The descriptor may end with its page.
    let count = memory.read(start_avma, &mut bytes);
    bytes.truncate(count);
    bytes
}

/// The block of a thread's stack. `None` for the first thread, whose stack the kernel made, and for
/// threads that are not pthreads.
pub(crate) fn stack_block(
    kind: &ThreadDescriptor,
    memory: &impl Memory,
    thread_pointer: u64,
) -> Option<StackBlock> {
    block_of(kind, memory, descriptor_of(kind, memory, thread_pointer)?)
}

/// The block of the stack with a descriptor.
fn block_of(kind: &ThreadDescriptor, memory: &impl Memory, descriptor_avma: u64) -> Option<StackBlock> {
    let bytes = bytes_at(memory, descriptor_avma);
    let words = bytes.as_chunks::<8>().0;
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    words.windows(2).find_map(|pair| {
        let &[start_avma, bytes] = pair else { return None };
        // The first thread has 0 there.
        let is_of_pages = start_avma != 0 && start_avma % page_bytes() == 0 && bytes % page_bytes() == 0;
        let end_avma = start_avma.checked_add(bytes)?;
        // The descriptor lies near the end: behind it are what alignment asks, and variables.
        let is_at_end = start_avma < descriptor_avma
            && descriptor_avma < end_avma
            && end_avma - descriptor_avma <= kind.begins_below + kind.stack_end_above;
        (is_of_pages && is_at_end).then_some(StackBlock { start_avma, descriptor_avma, end_avma })
    })
}

/// Finds the descriptors of threads that have ended.
pub(crate) struct Descriptors {
    kind: &'static ThreadDescriptor,
    live: Vec<u64>,
}

/// An ended thread whose stack is still mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndedThread {
    pub(crate) block: StackBlock,
    /// Whether the thread is joined or detached: its result is dead.
    pub(crate) is_done: bool,
}

/// Bytes before the end of a stack's block in which a descriptor begins.
const SEARCHED_BYTES: usize = 2 * DESCRIPTOR_BYTES;

impl Descriptors {
    /// `thread_pointers`: those of the live threads. `None` if fewer than half of these have a
    /// descriptor with a plausible id: then the id's place is not trusted.
    pub(crate) fn of(
        kind: &'static ThreadDescriptor,
        memory: &impl Memory,
        thread_pointers: &[u64],
    ) -> Option<Self> {
        let live = thread_pointers.iter().filter_map(|pointer| descriptor_of(kind, memory, *pointer));
        let live: Vec<u64> = live.collect();
        // In another pid namespace the id differs, but is neither 0 nor -1.
        let is_told = |avma: &&u64| id_at(kind, memory, **avma).is_some_and(|tid| tid > 0 && tid < 1 << 23);
        let told_count = live.iter().filter(is_told).count();
        (told_count > 0 && told_count * 2 >= thread_pointers.len()).then_some(Self { kind, live })
    }

    /// The ended thread whose stack's block ends at an address.
    pub(crate) fn ended_before(&self, memory: &impl Memory, end_avma: u64) -> Option<EndedThread> {
        let start_avma = end_avma.checked_sub(SEARCHED_BYTES as u64)?;
        let mut bytes = [0; SEARCHED_BYTES];
        if memory.read(start_avma, &mut bytes) != bytes.len() {
            return None;
        }
        let avma = self.kind.all_in(start_avma, &bytes).next()?;
        if self.live.contains(&avma) {
            return None;
        }
        let block = block_of(self.kind, memory, avma)?;
        let words = bytes[(avma - start_avma) as usize..].as_chunks::<8>().0.iter().enumerate();
        // A detached thread is its own joiner.
        let is_detached = words
            .filter(|(number, _)| !self.kind.is_of_signature(number * 8))
            .any(|(_, word)| u64::from_le_bytes(*word) == avma);
        match id_at(self.kind, memory, avma)? {
            -1 => Some(EndedThread { block, is_done: true }),
            0 => Some(EndedThread { block, is_done: is_detached }),
            _ => None,
        }
    }
}

/// The thread's id in a descriptor.
fn id_at(kind: &ThreadDescriptor, memory: &impl Memory, descriptor_avma: u64) -> Option<i32> {
    Some(memory.word(descriptor_avma.wrapping_add(kind.id_at))? as u32 as i32)
}
