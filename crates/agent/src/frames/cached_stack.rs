//! The cached stack: the last captured stack of a thread's level, which proves which frames are
//! unchanged. See [`crate::stack`].

use heapr_ring::sys;

use crate::frames::frame::{Frame, Innermost, Start, Word, read};
use crate::frames::shortcut::Shortcuts;
use crate::frames::stack_range::StackRange;
use crate::frames::suffix::StackSuffix;
use crate::modules;
use crate::tree;

/// Number of frames that fit in a thread's first arrays.
pub(crate) const FIRST_CAPACITY: usize = 256;
/// Number of words per frame that fit: no rule reads more than three, nearly all read one or two.
pub(crate) const WORDS_PER_FRAME: usize = 3;
/// Number of entries of the memo from a whole stack to the one cut to `--max-frames`.
pub(crate) const CUT_MEMO: usize = 64;
/// Number of frames that call the allocator whose sizes are remembered.
pub(crate) const INNERMOST: usize = 16;

/// The cached stack of a level, and room for the frames being unwound. All zero: no stack is
/// cached.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CachedStack {
    pub(crate) frames: *mut Frame,
    pub(crate) words: *mut Word,
    pub(crate) fresh: *mut Frame,
    pub(crate) fresh_words: *mut Word,
    pub(crate) capacity: usize,
    pub(crate) depth: usize,
    /// Hash of the cached stack's path.
    pub(crate) path_hash: u64,
    /// Number of frames, from the outer end, that have the hash of their path. A repair of the
    /// stack leaves the hashes further in to [`CachedStack::settle_hashes`].
    pub(crate) hashed: usize,
    /// The cached stack's node.
    pub(crate) node: u32,
    /// Null at first, and on the levels of signal handlers.
    pub(crate) shortcuts: *mut Shortcuts,
    /// The suffix by which the last stack was found, or null (the pointer is only compared).
    /// `last_suffix_capture` is the capture since which all stacks were found by it.
    pub(crate) last_suffix: *const StackSuffix,
    pub(crate) last_suffix_capture: u32,
    /// Recent suffix lookups that failed, less those that succeeded. `finds_by_return` follows from
    /// this count.
    pub(crate) suffix_misses: u32,
    pub(crate) finds_by_return: bool,
    pub(crate) innermost: [Innermost; INNERMOST],
    /// Code epoch of the rules and suffixes that the level remembers.
    pub(crate) code_epoch: u32,
    /// Code epoch of the cached stack, if one is cached and can be proven; else 0.
    pub(crate) proof_epoch: u32,
    pub(crate) capture_count: u32,
    /// Upper end of the inner frames' stack, if the outer ones lie on the thread's own stack; 0 if
    /// all lie on one.
    pub(crate) inner_high: usize,
    /// Whether a rule was used that needs more than (pc, sp, bp): then no frame of the stack can be
    /// proven later.
    pub(crate) is_unprovable: bool,
    pub(crate) cut_memo: [(u32, u32); CUT_MEMO],
    /// The salt when the stack's first frame was stored. If the present salt differs, parts of the
    /// hash may have been made with either.
    pub(crate) first_salt: u64,
}

impl CachedStack {
    /// True if the level has its table of shortcuts, which is made here unless there is no memory.
    #[inline(always)]
    pub(crate) fn has_shortcuts(&mut self) -> bool {
        if self.shortcuts.is_null() {
            self.shortcuts = Shortcuts::allocate();
        }
        !self.shortcuts.is_null()
    }

    /// Maps all arrays that the first stacks need.
    pub(crate) fn prepare(&mut self) {
        if self.capacity == 0 {
            self.grow(0, 0);
        }
        let _ = self.has_shortcuts();
    }

    /// Drops the cached stack.
    pub(crate) fn forget(&mut self) {
        (self.depth, self.proof_epoch) = (0, 0);
    }

    /// True if the cached frames are those of the stack that begins at `start` and has `node`.
    #[inline(always)]
    pub(crate) fn is_of(&self, start: Start, node: u32) -> bool {
        // SAFETY: `depth` frames are cached.
        self.depth != 0 && self.node == node && unsafe { self.frame(self.depth.wrapping_sub(1)) }.is_at(start)
    }

    /// Gives each cached frame the hash of its path.
    #[inline(always)]
    pub(crate) fn settle_hashes(&mut self) {
        if self.hashed < self.depth {
            self.settle_hashes_from(self.hashed);
        }
    }

    #[inline(never)]
    fn settle_hashes_from(&mut self, first: usize) {
        let salt = modules::salt();
        let mut hash = match first.checked_sub(1) {
            // SAFETY: below the depth.
            Some(outer) => unsafe { self.frame(outer).hash },
            None => tree::ROOT_HASH,
        };
        for index in first..self.depth {
            // SAFETY: below the depth.
            let frame = unsafe { self.frame(index) };
            hash = tree::path_hash(hash, index, frame.pc as u64, salt);
            frame.hash = hash;
        }
        self.hashed = self.depth;
    }

    /// Returns the frame at `index` from the outer end.
    #[inline(always)]
    #[expect(
        clippy::mut_from_ref,
        reason = "the arrays are mappings of their own, used by one hook at a time"
    )]
    pub(crate) unsafe fn frame(&self, index: usize) -> &mut Frame {
        // SAFETY: the callers' indices are below `capacity`, for which the array was mapped.
        unsafe { &mut *self.frames.add(index) }
    }

    /// Doubles the arrays (or makes the first ones). Returns `false` if there is no memory.
    #[cold]
    pub(crate) fn grow(&mut self, fresh_count: usize, fresh_words: usize) -> bool {
        let capacity = if self.capacity == 0 { FIRST_CAPACITY } else { self.capacity.wrapping_mul(2) };
        let Ok(memory) = sys::map_anonymous(bytes_for(capacity), false) else { return false };
        let old = (self.frames, self.words, self.fresh, self.fresh_words, self.capacity);
        let frames = memory.cast::<Frame>();
        // SAFETY: the mapping has room for 2 × capacity frames and 2 × WORDS_PER_FRAME × capacity
        // words. The old arrays hold the counts that are copied.
        unsafe {
            self.frames = frames;
            self.fresh = frames.add(capacity);
            self.words = frames.add(capacity.wrapping_mul(2)).cast::<Word>();
            self.fresh_words = self.words.add(capacity.wrapping_mul(WORDS_PER_FRAME));
            if old.4 != 0 {
                let words = if self.depth == 0 { 0 } else { (*old.0.add(self.depth - 1)).words_end as usize };
                core::ptr::copy_nonoverlapping(old.0, self.frames, self.depth);
                core::ptr::copy_nonoverlapping(old.1, self.words, words);
                core::ptr::copy_nonoverlapping(old.2, self.fresh, fresh_count);
                core::ptr::copy_nonoverlapping(old.3, self.fresh_words, fresh_words);
                sys::unmap(old.0.cast(), bytes_for(old.4));
            }
        }
        self.capacity = capacity;
        true
    }

    /// True if any of `words[..count]` has changed.
    ///
    /// # Safety
    /// 1. `count` words are cached.
    /// 2. They are readable.
    #[inline(always)]
    pub(crate) unsafe fn is_any_changed(&self, count: usize) -> bool {
        let mut differing = 0;
        // SAFETY: (1), (2).
        unsafe {
            let mut word = self.words;
            let mut left = count;
            while left >= 4 {
                let [a, b, c, d] = [*word, *word.add(1), *word.add(2), *word.add(3)];
                differing |= (read(a.address) ^ a.value)
                    | (read(b.address) ^ b.value)
                    | (read(c.address) ^ c.value)
                    | (read(d.address) ^ d.value);
                word = word.add(4);
                left -= 4;
            }
            if left & 2 != 0 {
                let [a, b] = [*word, *word.add(1)];
                differing |= (read(a.address) ^ a.value) | (read(b.address) ^ b.value);
                word = word.add(2);
            }
            if left & 1 != 0 {
                differing |= read((*word).address) ^ (*word).value;
            }
        }
        differing != 0
    }

    /// Returns the index plus one of the innermost word of `words[..count]` that has changed; 0 if
    /// all are unchanged.
    #[inline(always)]
    pub(crate) unsafe fn first_change(&self, count: usize) -> usize {
        let mut left = count;
        // SAFETY: `count` words are cached, and their addresses were readable when they were read.
        // They lie on a stack on which the current stack pointer lies deeper (checked by the
        // caller), so they still are readable.
        unsafe {
            while left >= 4 {
                let words = self.words.add(left - 4);
                let [a, b, c, d] = [*words, *words.add(1), *words.add(2), *words.add(3)];
                let differs = (read(a.address) ^ a.value)
                    | (read(b.address) ^ b.value)
                    | (read(c.address) ^ c.value)
                    | (read(d.address) ^ d.value);
                if differs != 0 {
                    break;
                }
                left -= 4;
            }
            while left > 0 {
                let word = *self.words.add(left - 1);
                if read(word.address) != word.value {
                    return left;
                }
                left -= 1;
            }
        }
        0
    }
}

fn bytes_for(capacity: usize) -> usize {
    capacity.wrapping_mul(2 * size_of::<Frame>() + 2 * WORDS_PER_FRAME * size_of::<Word>())
}

/// True if the cached words may be read from the stack `range`: the outermost one lies in it. A
/// stack that spans two has its outermost word on the thread's `own` stack, which stays mapped. The
/// other stack must be mapped at least as far up as it was.
pub(crate) fn is_within(kept: &CachedStack, range: StackRange, own: StackRange) -> bool {
    if kept.inner_high != 0 {
        return range == own || range.high >= kept.inner_high;
    }
    // SAFETY: called only if a stack is cached, so the array is mapped. A single frame (`depth` 1)
    // may have no words; then the value is not used.
    let outermost = unsafe { *kept.words };
    kept.depth == 1 || outermost.address < range.high
}

/// Fast path of [`is_within`]: true if the cached stack certainly lies on a stack that ends at
/// `high`.
#[inline(always)]
pub(crate) fn is_surely_within(kept: &CachedStack, high: usize) -> bool {
    // SAFETY: as above.
    unsafe { (*kept.words).address < high }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a cached stack of `count` words, which lie in `memory`.
    fn kept(memory: &[usize], words: &mut Vec<Word>) -> CachedStack {
        *words = memory
            .iter()
            .map(|place| Word { address: core::ptr::from_ref(place).expose_provenance(), value: *place })
            .collect();
        // SAFETY: all zero: no stack is cached.
        let mut kept: CachedStack = unsafe { core::mem::zeroed() };
        kept.words = words.as_mut_ptr();
        kept
    }

    #[test]
    fn the_innermost_change_is_found_among_any_number_of_words() {
        for count in 0..23_usize {
            let mut memory: Vec<usize> = (0..count).map(|number| number * 7 + 1).collect();
            let mut words = Vec::new();
            let kept = kept(&memory, &mut words);
            // One changed word, and another one further out.
            for inner in 0..=count {
                for outer in 0..=inner {
                    let changed = [inner, outer].map(|number| number.checked_sub(1));
                    for place in changed.into_iter().flatten() {
                        memory[place] = !(place * 7 + 1);
                    }
                    for asked in 0..=count {
                        let expected = changed
                            .into_iter()
                            .flatten()
                            .filter(|&place| place < asked)
                            .max()
                            .map_or(0, |place| place + 1);
                        // SAFETY: `count` words are cached.
                        let found = unsafe { kept.first_change(asked) };
                        assert_eq!(found, expected, "{asked} of {count}: {changed:?}");
                        // SAFETY: as above.
                        assert_eq!(unsafe { kept.is_any_changed(asked) }, expected != 0);
                    }
                    for place in changed.into_iter().flatten() {
                        memory[place] = place * 7 + 1;
                    }
                }
            }
        }
    }
}
