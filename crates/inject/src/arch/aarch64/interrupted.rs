//! Stacks that signal handlers have interrupted, found by the kernel's frames.

/// First word of the record of floating-point registers: magic number, and size in bytes. It is the
/// first record behind the general registers (Linux, `setup_sigframe_layout` of arm64).
const VECTORS_HEAD: u64 = 528 << 32 | 0x4650_8001;
/// Number of words from the interrupted stack pointer to that record: sp, pc, state, alignment.
const SP_BEFORE_HEAD: usize = 4;

/// Stack pointers of the frames that the kernel has made for signals, in words of a stack. The
/// handlers' return address, `_sigreturn_avma`, lies in their own frames and says nothing here.
pub(crate) fn interrupted_pointers(words: &[u64], _sigreturn_avma: u64) -> impl Iterator<Item = u64> {
    let heads = words.iter().enumerate().filter(|&(_, &word)| word == VECTORS_HEAD);
    heads.filter_map(|(at, _)| words.get(at.checked_sub(SP_BEFORE_HEAD)?).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interrupted_stack_is_found_before_the_vectors() {
        let words = [1, VECTORS_HEAD, 0x7000, 0x4000, 0, 0, VECTORS_HEAD, 5];
        assert_eq!(interrupted_pointers(&words, 0).collect::<Vec<_>>(), [0x7000]);
    }
}
