//! The suffixes of a thread's recent stacks, found by their start. If many stacks have the same
//! start, the innermost return address is used, too: see [`crate::stack::suffix_cache::tag`].
//!
//! ```text
//! suffixes   [4 ways            ][4][4] ...        1 KiB a set
//! tags   [4 hashes of starts][4][4] ...        16 bytes a set, compared at once
//! next   [1][1][1] ...                         which of the four is replaced next
//! ```
//!
//! A program that allocates in a loop has the same few stacks in turn. The frames between the
//! allocator and the loop differ from the last stack's, but not from those of the stack before. A
//! large program has thousands of such stacks, so the table grows if many suffixes are entered.
//! (3.3 million stacks of clang differ from the one before. Of these, 1.6 million have one of 128
//! suffixes, 2.3 one of 512, 2.75 one of 2,048, and 2.8 one of 8,192.)

use core::sync::atomic::{AtomicUsize, Ordering::*, compiler_fence};

use heapr_ring::sys;

use crate::arch::equal_words;
use crate::frames::frame::{Frame, Start};
use crate::frames::suffix::{StackSuffix, Unwound};

/// Number of suffixes with the same hash of their start.
const WAYS: usize = 4;
/// Number of sets of the first table (32 KiB), and the factor by which it grows.
const FIRST_SETS: usize = 32;
const GROWTH: usize = 4;
/// Largest number of sets (512 KiB): a thread's suffixes should fit in the second-level cache.
const SETS_MAX: usize = 512;
/// Number of times that each suffix must have been replaced before a table grows. With it, only
/// threads with 10,000 unwound stacks get 512 KiB.
const REPLACED: usize = 16;
/// Largest sum of the grown tables of all threads, in bytes: 30 of the largest ones. A program with
/// hundreds of threads is a large one anyway, and its other threads keep their first tables.
const GROWN_BYTES_MAX: usize = 16 << 20;

type Tags = [u32; WAYS];
type Set = [StackSuffix; WAYS];

/// A thread's suffixes. All zero: no table yet.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SuffixTable {
    sets: *mut Set,
    /// One array entry per set, after the sets in the same mapping.
    tags: *mut Tags,
    next: *mut u8,
    set_count: usize,
    /// Number of suffixes entered since this table was made.
    kept_count: usize,
}

fn bytes_for(set_count: usize) -> usize {
    set_count.wrapping_mul(size_of::<Set>() + size_of::<Tags>() + 1)
}

/// Key of a suffix: a hash of its start and of the innermost frame's return address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(u32);

impl Tag {
    /// Makes the key. `return_address` is the innermost frame's; 0: it is not part of the key.
    #[inline(always)]
    pub(crate) fn of(start: Start, return_address: usize) -> Self {
        // Without bp: in most code it is an ordinary register, with another value each time.
        let (pc, sp) = ((start.pc ^ return_address.rotate_left(24)) as u64, start.sp as u64);
        let product = u128::from(pc ^ 0x9e37_79b9_7f4a_7c15) * u128::from(sp ^ 0xd6e8_feb8_6659_fd93);
        // Each bit of the folded product depends on all bits of both factors. 0 marks a suffix that
        // may be half written, or was forgotten.
        Self((((product >> 64) as u64 ^ product as u64) as u32).max(1))
    }
}

/// The cached stack; a suffix must lead to one of its frames.
#[derive(Clone, Copy)]
pub(crate) struct CachedFrames {
    pub(crate) frames: *const Frame,
    pub(crate) depth: usize,
}

impl SuffixTable {
    /// Returns the index of the set for a tag. The table must exist.
    #[inline(always)]
    fn set_of(&self, tag: Tag) -> usize {
        tag.0 as usize & self.set_count.wrapping_sub(1)
    }

    /// Returns a suffix from `start` whose words are all unchanged and that ends at a frame of the
    /// cached stack.
    ///
    /// # Safety
    /// 1. `start.sp` lies on a mapped stack that is readable up to `high`.
    /// 2. `kept` has as many frames as it says; the suffixes are of stacks that were cached there.
    /// 3. The table exists (see [`SuffixTable::prepare`]).
    #[inline(always)]
    pub(crate) unsafe fn find(
        &self,
        tag: Tag,
        start: Start,
        high: usize,
        kept: CachedFrames,
    ) -> Option<(&StackSuffix, &Frame)> {
        let set = self.set_of(tag);
        // SAFETY: the index of a set, by (3).
        let mut equal = unsafe { equal_words(*self.tags.add(set), tag.0) };
        while equal != 0 {
            // SAFETY: the indexes of a set, and of a suffix in it; (1), (2).
            unsafe {
                let suffix = &*self.sets.add(set).cast::<StackSuffix>().add(equal.trailing_zeros() as usize);
                if let Some(base) = suffix.leads_from(start, high, kept.frames)
                    && suffix.is_among(kept.depth)
                {
                    return Some((suffix, base));
                }
            }
            equal &= equal.wrapping_sub(1);
        }
        None
    }

    /// Enters the suffix of a stack. `grown_bytes` is the sum of the process's grown tables.
    ///
    /// # Safety
    /// 1. `unwound.words` holds as many words as its frames say.
    #[inline(always)]
    pub(crate) unsafe fn keep(&mut self, tag: Tag, unwound: &Unwound<'_>, grown_bytes: &AtomicUsize) {
        if !unwound.is_short() || (self.is_to_grow() && !self.grow(grown_bytes)) {
            return;
        }
        let set = self.set_of(tag);
        self.kept_count = self.kept_count.wrapping_add(1);
        // SAFETY: the indexes of a set, and of a suffix in it; (1).
        unsafe {
            let next = &mut *self.next.add(set);
            let number = usize::from(*next) % WAYS;
            *next = next.wrapping_add(1);
            let place = self.tags.add(set).cast::<u32>().add(number);
            let suffix = &mut *self.sets.add(set).cast::<StackSuffix>().add(number);
            // A signal handler that jumps out of here must not leave half a suffix.
            *place = 0;
            compiler_fence(SeqCst);
            let is_set = suffix.set(unwound);
            compiler_fence(SeqCst);
            if is_set {
                *place = tag.0;
            }
        }
    }

    /// Makes the first table unless there is one. Returns `false` if there is no memory for it.
    pub(crate) fn prepare(&mut self) -> bool {
        // (A first table is not counted.)
        self.set_count != 0 || self.grow(&AtomicUsize::new(0))
    }

    /// Forgets all suffixes, because code was unloaded or replaced.
    #[cold]
    #[inline(never)]
    pub(crate) fn forget(&mut self) {
        for set in 0..self.set_count {
            // SAFETY: the index of a set.
            unsafe { *self.tags.add(set) = [0; WAYS] };
        }
    }

    #[inline(always)]
    fn is_to_grow(&self) -> bool {
        self.kept_count >= self.set_count.wrapping_mul(WAYS * REPLACED) && self.set_count < SETS_MAX
    }

    /// Replaces a smaller table, whose suffixes are forgotten, if a larger one may be made. Returns
    /// `false` if there is no table afterwards.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, grown_bytes: &AtomicUsize) -> bool {
        let (old, old_count) = (self.sets, self.set_count);
        let is_first = old_count == 0;
        let set_count = if is_first { FIRST_SETS } else { old_count.wrapping_mul(GROWTH) };
        // A first table does not count as a grown one.
        let old_bytes = if old_count <= FIRST_SETS { 0 } else { bytes_for(old_count) };
        let more_bytes = if is_first { 0 } else { bytes_for(set_count).wrapping_sub(old_bytes) };
        // If the table may not grow, or there is no memory, the next attempt follows after as many
        // suffixes.
        self.kept_count = 0;
        if grown_bytes.fetch_add(more_bytes, Relaxed).wrapping_add(more_bytes) > GROWN_BYTES_MAX {
            grown_bytes.fetch_sub(more_bytes, Relaxed);
            return !is_first;
        }
        let Ok(memory) = sys::map_anonymous(bytes_for(set_count), false) else {
            grown_bytes.fetch_sub(more_bytes, Relaxed);
            return !is_first;
        };
        self.sets = memory.cast();
        self.tags = self.sets.wrapping_add(set_count).cast();
        self.next = self.tags.wrapping_add(set_count).cast();
        // The larger table serves as one of the old size, too, in case a signal handler jumps out
        // of here.
        compiler_fence(SeqCst);
        self.set_count = set_count;
        if !is_first {
            // SAFETY: the mapping of the former table, to which no reference exists.
            unsafe { sys::unmap(old.cast(), bytes_for(old_count)) };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::frame::Word;

    /// A stack in its own memory: frames that are four words apart, each with a return address.
    struct Stack {
        memory: Vec<usize>,
        frames: Vec<Frame>,
        words: Vec<Word>,
    }

    impl Stack {
        /// `pcs` begins with the outermost one; the innermost frame lies at the lower end.
        fn new(pcs: &[usize]) -> Self {
            Self::with_frame_pointers(pcs, |_| false)
        }

        /// Makes a stack in which the frames that `keeps` selects save the frame pointer right
        /// below their return address.
        fn with_frame_pointers(pcs: &[usize], keeps: impl Fn(usize) -> bool) -> Self {
            let mut memory = vec![0; pcs.len() * 4 + 4];
            let base = memory.as_ptr() as usize;
            let sp_of = |number: usize| base + (pcs.len() - number) * 32;
            let (mut frames, mut words, mut hash) = (Vec::new(), Vec::new(), 0_u64);
            for (number, &pc) in pcs.iter().enumerate() {
                hash = hash.wrapping_mul(31).wrapping_add(pc as u64);
                if number != 0 {
                    // The return address into the caller lies below the caller's stack pointer.
                    let address = sp_of(number - 1) - 8;
                    memory[(address - base) / 8] = pcs[number - 1];
                    words.push(Word { address, value: pcs[number - 1] });
                }
                let has_bp_word = number != 0 && keeps(number);
                if has_bp_word {
                    let address = sp_of(number - 1) - 16;
                    memory[(address - base) / 8] = 0x7000 + number;
                    words.push(Word { address, value: 0x7000 + number });
                }
                frames.push(Frame {
                    pc,
                    sp: sp_of(number),
                    bp: 0,
                    hash,
                    words_end: words.len() as u32,
                    is_exact: false,
                    needs_bp: false,
                    settles_bp: false,
                    has_bp_word,
                });
            }
            Self { memory, frames, words }
        }

        fn start(&self) -> Start {
            self.frames.last().unwrap().state()
        }

        fn unwound(&self, base_index: usize, node: u32) -> Unwound<'_> {
            Unwound {
                start: self.start(),
                node,
                base: self.frames[base_index],
                base_index,
                frames: &self.frames[base_index + 1..],
                words: self.words.as_ptr(),
            }
        }

        fn find<'t>(&self, table: &'t SuffixTable, start: Start) -> Option<&'t StackSuffix> {
            let high = self.memory.as_ptr_range().end as usize;
            let kept = CachedFrames { frames: self.frames.as_ptr(), depth: self.frames.len() - 1 };
            // SAFETY: the stack's memory up to its end, and its frames except the innermost; the
            // suffixes are of stacks of as many frames.
            let found = unsafe { table.find(Tag::of(start, 0), start, high, kept) };
            found.map(|(suffix, base)| {
                assert!(core::ptr::eq(base, &raw const self.frames[suffix.base_index()]));
                suffix
            })
        }
    }

    fn table() -> SuffixTable {
        let (sets, tags, next) = (core::ptr::null_mut(), core::ptr::null_mut(), core::ptr::null_mut());
        let mut table = SuffixTable { sets, tags, next, set_count: 0, kept_count: 0 };
        assert!(table.prepare() && table.prepare());
        table
    }

    fn keep(table: &mut SuffixTable, unwound: &Unwound<'_>) {
        // SAFETY: the words are those of the stack.
        unsafe { table.keep(Tag::of(unwound.start, 0), unwound, &AtomicUsize::new(0)) };
    }

    #[test]
    fn a_way_is_found_while_its_words_and_its_base_stand() {
        let mut stack = Stack::new(&[0x10, 0x20, 0x30, 0x40, 0x50]);
        let mut table = table();
        assert!(stack.find(&table, stack.start()).is_none());
        keep(&mut table, &stack.unwound(1, 7));
        let start = stack.start();
        let suffix = stack.find(&table, start).unwrap();
        assert_eq!((suffix.node, suffix.base_index()), (7, 1));
        assert_eq!(suffix.return_addresses().collect::<Vec<_>>(), [0x30, 0x40, 0x50]);
        for other in [Start { pc: 0x51, ..start }, Start { sp: start.sp - 32, ..start }] {
            assert!(stack.find(&table, other).is_none());
        }
        // No frame needs the frame pointer.
        assert!(stack.find(&table, Start { bp: 9, ..start }).is_some());
        for number in 0..stack.memory.len() {
            let (before, is_word) = (stack.memory[number], (1..4).contains(&(number / 4)));
            stack.memory[number] ^= 1;
            // The suffix's words are the return addresses into frames 1 to 3; the one into frame 0
            // is the base's.
            let is_of_suffix = is_word && number % 4 == 3;
            assert_eq!(stack.find(&table, start).is_none(), is_of_suffix, "word {number}");
            stack.memory[number] = before;
        }
        stack.frames[1].hash ^= 1;
        assert!(stack.find(&table, start).is_none());
        stack.frames[1].hash ^= 1;
        stack.frames[1].needs_bp = true;
        assert!(stack.find(&table, start).is_some());
        stack.frames[1].bp = 1;
        assert!(stack.find(&table, start).is_none());
        stack.frames[1].bp = 0;
        // The base is still in memory, but it is not cached any more.
        for depth in 0..3 {
            let kept = CachedFrames { frames: stack.frames.as_ptr(), depth };
            let high = stack.memory.as_ptr_range().end as usize;
            // SAFETY: the stack's memory up to its end, and its frames.
            let found = unsafe { table.find(Tag::of(start, 0), start, high, kept) };
            assert_eq!(found.is_some(), depth > 1);
        }
        table.forget();
        assert!(stack.find(&table, start).is_none());
    }

    #[test]
    fn frame_pointers_are_words_of_a_way_too() {
        let pcs: Vec<usize> = (1..=9).map(|number| number * 0x10).collect();
        for kept in 0..1_usize << 7 {
            // Frames 2 to 8 are the suffix's.
            let keeps = |number: usize| number >= 2 && kept >> (number - 2) & 1 != 0;
            let mut stack = Stack::with_frame_pointers(&pcs, keeps);
            let mut table = table();
            keep(&mut table, &stack.unwound(1, 7));
            let start = stack.start();
            let suffix = stack.find(&table, start).unwrap();
            assert_eq!(suffix.return_addresses().collect::<Vec<_>>(), pcs[2..]);
            for place in 0..stack.memory.len() {
                let frame = 8 - (place / 4).min(8) + 1;
                let is_of_suffix =
                    (2..9).contains(&frame) && (place % 4 == 3 || place % 4 == 2 && keeps(frame));
                stack.memory[place] ^= 1;
                assert_eq!(stack.find(&table, start).is_none(), is_of_suffix, "{kept:#b}, word {place}");
                stack.memory[place] ^= 1;
            }
        }
        // A frame pointer that does not lie below the return address is a single word.
        let mut stack = Stack::with_frame_pointers(&pcs, |number| number == 5);
        let number = stack.words.iter().position(|word| word.value == 0x7005).unwrap();
        stack.words[number].address -= 8;
        let place = (stack.words[number].address - stack.memory.as_ptr() as usize) / 8;
        stack.memory[place] = 0x7005;
        let mut table = table();
        keep(&mut table, &stack.unwound(1, 7));
        assert!(stack.find(&table, stack.start()).is_some());
        stack.memory[place] ^= 1;
        assert!(stack.find(&table, stack.start()).is_none());
    }

    #[test]
    fn what_does_not_fit_is_no_suffix() {
        let mut table = table();
        let long: Vec<usize> = (1..40).collect();
        let stack = Stack::new(&long);
        keep(&mut table, &stack.unwound(1, 7));
        assert!(stack.find(&table, stack.start()).is_none());
        keep(&mut table, &stack.unwound(20, 7));
        assert!(stack.find(&table, stack.start()).is_some());
        // A value of more than 48 bits, which takes the place of a suffix with the same start.
        let stack = Stack::new(&[0x10, 1 << 48, 0x30]);
        for _ in 0..2 * WAYS {
            keep(&mut table, &stack.unwound(1, 7));
            assert!(stack.find(&table, stack.start()).is_none());
        }
        // A word below the start, and one too far above it.
        for move_by in [-4096_isize, 1 << 18] {
            let mut stack = Stack::new(&[0x10, 0x20, 0x30]);
            stack.words[1].address = stack.words[1].address.wrapping_add_signed(move_by);
            keep(&mut table, &stack.unwound(1, 7));
            assert!(stack.find(&table, stack.start()).is_none());
        }
    }

    #[test]
    fn the_table_grows_where_ways_are_replaced_and_keeps_the_latest() {
        let mut table = table();
        let stacks: Vec<Stack> =
            (0..12 * FIRST_SETS * WAYS).map(|number| Stack::new(&[0x10, 0x20, 0x1000 + number])).collect();
        let mut found = Vec::new();
        for _ in 0..60 {
            found.push(stacks.iter().filter(|stack| stack.find(&table, stack.start()).is_some()).count());
            for (number, stack) in stacks.iter().enumerate() {
                if stack.find(&table, stack.start()).is_none() {
                    keep(&mut table, &stack.unwound(1, number as u32));
                }
                assert_eq!(stack.find(&table, stack.start()).unwrap().node, number as u32);
            }
        }
        assert_eq!(table.set_count, SETS_MAX);
        assert!(found[1] <= FIRST_SETS * WAYS && found[59] > stacks.len() * 3 / 4, "{found:?}");
    }

    #[test]
    fn all_tables_together_grow_to_a_bound_and_those_that_may_not_go_on_as_they_are() {
        let grown_bytes = AtomicUsize::new(0);
        let stacks: Vec<Stack> =
            (0..12 * FIRST_SETS * WAYS).map(|number| Stack::new(&[0x10, 0x20, 0x1000 + number])).collect();
        let mut tables: Vec<SuffixTable> =
            (0..GROWN_BYTES_MAX / bytes_for(SETS_MAX) + 4).map(|_| table()).collect();
        for table in &mut tables {
            for stack in stacks.iter().cycle().take(2 * SETS_MAX * WAYS * REPLACED) {
                // SAFETY: the words are those of the stack.
                unsafe { table.keep(Tag::of(stack.start(), 0), &stack.unwound(1, 7), &grown_bytes) };
                assert!(stack.find(table, stack.start()).is_some());
            }
        }
        let sizes: Vec<usize> = tables.iter().map(|table| table.set_count).collect();
        let grown =
            sizes.iter().filter(|&&count| count > FIRST_SETS).map(|&count| bytes_for(count)).sum::<usize>();
        assert_eq!(grown_bytes.load(Relaxed), grown);
        assert!(grown <= GROWN_BYTES_MAX && grown > GROWN_BYTES_MAX - bytes_for(SETS_MAX), "{sizes:?}");
        assert_eq!((sizes[0], sizes.last()), (SETS_MAX, Some(&FIRST_SETS)));
    }
}
