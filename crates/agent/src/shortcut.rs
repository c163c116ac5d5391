//! The ways that recent stacks took from their top down to a frame that they share with others.
//!
//! A program that allocates in a loop has the same few stacks in turn: the frames between the allocator and the loop
//! differ from the last stack's, but not from those of the stack before. A way keeps them with the words that their
//! rules read:
//!
//! ```text
//! start (pc, sp, bp)  --frames and words-->  base frame (pc, sp, bp, path, depth)
//! ```
//!
//! It is proof in the same sense as the kept stack (see [`crate::stack`]): unwinding is a pure function of the state and of
//! the words read, so the same start and the same words lead to the same base. Comparing them takes a tenth of the
//! time of unwinding, and the node is known, if the base has the same path. (Python, redis, Node, clang and jq have
//! 3.3 to 4.1 such frames in each new stack, which took 60 ns.)

use heapr_ring::sys;

use crate::kept_stack::{Frame, Kept, Start, Word};
use crate::known_rules::KnownRules;
use crate::tree;
use crate::x86_64::prefetch;

/// Frames of a way. With 8, redis unwound 432,000 stacks anew that had nine fresh frames each, and Node 3.7 million frames; with 16
/// it is 5,000 stacks and 0.3 million frames.
pub(crate) const FRAMES_MAX: usize = 16;
/// Words of a way: a return address for each frame, and some frame pointers.
pub(crate) const WORDS_MAX: usize = 20;
/// Ways with the same hash of their start.
const WAYS: usize = 4;
/// Sets of ways: 128 ways in all are 136 KiB, of which only what is used is touched.
const SETS: usize = 32;

/// One way. All zero: none.
#[repr(C, align(64))]
struct Way {
    start: Start,
    base: Start,
    /// Of the path to the base.
    base_hash: u64,
    /// Of the whole stack.
    node: u32,
    /// Number of the base frame from the outer end.
    base_index: u32,
    code_epoch: u32,
    frame_count: u16,
    word_count: u16,
    /// Highest address that is read.
    high: usize,
    /// The program's frame pointer register matters at the start (see [`Frame::needs_bp`]).
    needs_bp: bool,
    /// Outermost first, as the frames.
    words: [Word; WORDS_MAX],
    /// Outermost first; `words_end` counts from the base's.
    frames: [Frame; FRAMES_MAX],
}

/// Stacks whose nodes a thread remembers: 64 KiB, which stay in the second-level cache where the tree's table does not
/// (clang: 146,000 stacks all over 32 MiB, 70 ns a lookup).
const NODES: usize = 1 << 12;

/// A stack's node. All zero: none.
#[derive(Clone, Copy)]
#[repr(C)]
struct KnownNode {
    hash: u64,
    node: u32,
}

/// A thread's ways. All zero: none.
#[repr(C, align(64))]
pub(crate) struct Shortcuts {
    /// Hashes of the starts.
    hashes: [[u32; WAYS]; SETS],
    /// The way of each set that is replaced next.
    next: [u8; SETS],
    ways: [[Way; WAYS]; SETS],
    nodes: [KnownNode; NODES],
    pub(crate) rules: KnownRules,
}

/// A way that leads from the start asked for to `base_index` of the kept stack.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    /// Outermost first; `words_end` counts from the base's.
    pub(crate) frames: &'a [Frame],
    /// Of all frames, outermost first.
    pub(crate) words: &'a [Word],
    /// The frame of the kept stack that the way leads to.
    pub(crate) base_index: usize,
    /// The whole stack's node.
    pub(crate) node: u32,
}

#[inline(always)]
fn hash(start: Start) -> u32 {
    // Without bp: in most code it is just another register, and another one each time.
    let mixed = (start.pc ^ start.sp.rotate_left(24)) as u64;
    ((mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32).max(1)
}

#[inline(always)]
fn set(hash: u32) -> usize {
    (hash >> 8) as usize % SETS
}

impl Shortcuts {
    /// Whether a level has its table, which is made unless there is no memory.
    #[inline(always)]
    pub(crate) fn is_there(kept: &mut Kept) -> bool {
        if kept.shortcuts.is_null() {
            kept.shortcuts = Self::allocate();
        }
        !kept.shortcuts.is_null()
    }

    #[cold]
    #[inline(never)]
    fn allocate() -> *mut Self {
        sys::map_anonymous(size_of::<Self>(), false).map_or(core::ptr::null_mut(), <*mut u8>::cast)
    }

    /// The node of the path with this hash is asked for soon: its entry is pulled into the caches.
    #[inline(always)]
    pub(crate) fn node_soon(&self, hash: u64) {
        if let Some(known) = self.nodes.get((hash >> 32) as usize % NODES) {
            prefetch(core::ptr::from_ref(known).cast());
        }
    }

    /// The node of the path with this hash, looked up in the tree only if it is not remembered.
    #[inline(always)]
    pub(crate) fn node(&mut self, hash: u64) -> Option<u32> {
        let Some(known) = self.nodes.get_mut((hash >> 32) as usize % NODES) else { return tree::find(hash) };
        if known.hash != hash {
            *known = KnownNode { hash, node: tree::find(hash)? };
        }
        Some(known.node)
    }

    /// Finds a way from `start` whose words all have their values and that ends at a frame of the kept stack, of which
    /// `depth` frames stand.
    ///
    /// # Safety
    /// 1. `start.sp` lies on a mapped stack that is readable up to `high`.
    /// 2. `kept` holds `depth` frames.
    #[inline(always)]
    pub(crate) unsafe fn find(
        &self,
        start: Start,
        code_epoch: u32,
        high: usize,
        kept: *const Frame,
        depth: usize,
    ) -> Option<Found<'_>> {
        let hash = hash(start);
        let hashes = self.hashes.get(set(hash))?;
        let ways = self.ways.get(set(hash))?;
        for (way, &found) in ways.iter().zip(hashes) {
            if found != hash
                || way.start.pc != start.pc
                || way.start.sp != start.sp
                || (way.needs_bp && way.start.bp != start.bp)
                || way.code_epoch != code_epoch
                || way.base_index as usize >= depth
                || way.high >= high
            {
                continue;
            }
            // SAFETY: (2), below the depth.
            let base = unsafe { &*kept.add(way.base_index as usize) };
            if base.hash != way.base_hash || !base.is_at(way.base) {
                continue;
            }
            let words = way.words.get(..usize::from(way.word_count))?;
            // SAFETY: (1); each address was seen to lie above the start's stack pointer, and below `high` now.
            if !words.iter().all(|word| unsafe { word.is_unchanged() }) {
                continue;
            }
            let frames = way.frames.get(..usize::from(way.frame_count))?;
            return Some(Found { frames, words, base_index: way.base_index as usize, node: way.node });
        }
        None
    }

    /// Keeps a way from `start` over `frames` (outermost first) to a base (its frame, its number from the outer end), with the
    /// frames' words; `node`: of the whole stack.
    #[inline(always)]
    pub(crate) fn keep(
        &mut self,
        start: Start,
        code_epoch: u32,
        (base, base_index): (Frame, usize),
        node: u32,
        frames: &[Frame],
        words: &[Word],
    ) {
        let mut high = 0;
        for word in words {
            if word.address < start.sp {
                return;
            }
            high = high.max(word.address);
        }
        let hash = hash(start);
        let (Some(hashes), Some(ways), Some(next)) =
            (self.hashes.get_mut(set(hash)), self.ways.get_mut(set(hash)), self.next.get_mut(set(hash)))
        else {
            return;
        };
        let place = usize::from(*next) % WAYS;
        *next = next.wrapping_add(1);
        let (Some(way), Some(known)) = (ways.get_mut(place), hashes.get_mut(place)) else { return };
        *known = hash;
        way.start = start;
        way.base = base.state();
        way.base_hash = base.hash;
        way.node = node;
        way.base_index = base_index as u32;
        way.code_epoch = code_epoch;
        way.frame_count = frames.len() as u16;
        way.word_count = words.len() as u16;
        way.high = high;
        way.needs_bp = frames.last().is_none_or(|top| top.needs_bp);
        for (place, word) in way.words.iter_mut().zip(words) {
            *place = *word;
        }
        for (place, frame) in way.frames.iter_mut().zip(frames) {
            *place = Frame { words_end: frame.words_end.wrapping_sub(base.words_end), ..*frame };
        }
    }
}
