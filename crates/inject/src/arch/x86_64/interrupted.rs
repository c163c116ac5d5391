//! Stacks that signal handlers have interrupted, found by the kernel's frames.

/// Number of words from a signal frame's return address to the interrupted stack pointer: flags,
/// link, stack (3), and 15 registers.
const SP_WORDS: usize = 21;

/// Stack pointers of the frames that the kernel has made for signals, in words of a stack. Each
/// frame begins with the handler's return address, `sigreturn_avma`.
pub(crate) fn interrupted_pointers(words: &[u64], sigreturn_avma: u64) -> impl Iterator<Item = u64> {
    let frames = words.iter().enumerate().filter(move |&(_, &word)| word == sigreturn_avma);
    frames.filter_map(|(place, _)| words.get(place + SP_WORDS).copied())
}
