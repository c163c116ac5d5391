//! Where the stack of a thread lies, told by the thread's descriptor.
//!
//! ```text
//!  block of the stack                                            its end
//!  | guard | not in use |sp ... frames ... | static TLS | descriptor |
//!                                                       ^ fs base    block and size stand somewhere in it
//! ```
//! Neither the descriptor's size nor the place of anything in it is the same in all versions of the
//! C library: so the two words are looked for. A thread's block holds its descriptor, which no other
//! pair of words does that could be a range of pages.

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
        let is_of_pages = start_avma % PAGE_BYTES == 0 && bytes % PAGE_BYTES == 0;
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
