//! The cached interpreter frames of a thread's level; the present ones are read at the cost of what
//! changed.
//!
//! ```text
//! cached  outermost                                innermost   former
//!         [{main}:60] [fill:12] [features:41]                | [scale:7]
//! now     [{main}:60] [fill:13] [features:41] [scale:7]
//!                        ^ updated               ^ as it was when it lay there last
//! ```
//!
//! The present stack is read from the innermost frame on until a cached one lies at the same
//! position. From there each cached frame is compared with the present contents of its position,
//! and with the position to which it leads. So each frame is reached from the frame inwards of it,
//! and no frame is assumed unchanged. Frames that have returned stay in the array after the others,
//! and are met like any other. A program calls the same functions again and again from the same
//! position. The hash of a stack is the sum of all frames' parts, which depend on the depth, so
//! that a change costs one frame.

use crate::languages::pairs::Pairs;
use crate::languages::walked::describing::Describing;
use crate::languages::walked::{Dialect, END, Position, Walk, Walked};
use crate::record::thread::Scope;
use crate::tree;

/// Largest number of frames that are read, from the innermost on.
const CAPACITY: usize = 1 << 14;
/// Largest number of innermost frames that may be new without reading the stack anew.
const MOVED_MAX: usize = 256;
/// Size of the table from positions to frames.
const NUMBERS: usize = 1 << 12;

/// A frame that was read.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct WalkedFrame {
    pub(crate) walked: Walked,
    pub(crate) position: Position,
    /// Language, function and line; 0: the frame is not shown.
    pub(crate) place: u64,
    /// The frame's part of the stack's hash.
    part: u64,
    /// Native position of the evaluating function that runs the frame.
    pub(crate) join: usize,
}

/// The cached frames of a level. All zero: empty.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CachedWalk {
    depth: usize,
    /// Number of frames in the array, including former ones.
    known: usize,
    /// Number of frames that are shown, and the sum of all frames' parts.
    shown: usize,
    sum: u64,
    /// True if frames outwards of the outermost cached one could not be read, or are too many.
    is_cut: bool,
    /// Cached frames, outermost first; then the former ones.
    frames: [WalkedFrame; CAPACITY],
    /// Indexes of frames plus one, by the hash of their positions.
    numbers: [u16; NUMBERS],
    /// A stack that is read anew, innermost first.
    walked: [(Walked, Position); CAPACITY],
    pub(crate) pairs: Pairs,
    /// Data for reading frames.
    pub(crate) walk: Walk,
    describing: Describing,
}

impl CachedWalk {
    /// Returns the hash of the cached stack; 0 if no frame is shown.
    #[inline(always)]
    pub(crate) fn hash(&self) -> u64 {
        if self.shown == 0 { 0 } else { self.sum }
    }

    /// Returns the cached frames, outermost first.
    pub(crate) fn frames(&self) -> &[WalkedFrame] {
        self.frames.get(..self.depth).unwrap_or_default()
    }

    /// Returns the cached frames, and the cache of pairs.
    pub(crate) fn frames_and_pairs(&mut self) -> (&[WalkedFrame], &mut Pairs) {
        (self.frames.get(..self.depth).unwrap_or_default(), &mut self.pairs)
    }

    /// Returns the number of frames that are shown.
    pub(crate) fn shown(&self) -> usize {
        self.shown
    }

    /// Returns the number of calls of the evaluating function that run the frames.
    pub(crate) fn runs(&self) -> usize {
        self.frames().iter().filter(|frame| frame.walked.is_entry).count()
    }

    /// Drops the cached frames and all cached results.
    pub(crate) fn forget(&mut self) {
        self.set_depth(0);
        self.known = 0;
        self.describing.forget();
        self.walk.slots.forget_those_of(self.walk.native);
    }

    /// Makes the cached frames those of the calling thread.
    #[inline(always)]
    pub(crate) fn follow<D: Dialect>(&mut self, scope: &mut Scope) {
        let first = D::first(&mut self.walk).unwrap_or(END);
        self.describing.begin_event();
        if self.is_cut || !self.compare::<D>(scope, first) {
            self.walk_anew::<D>(scope, first);
        }
    }

    #[inline(always)]
    fn frame(&mut self, number: usize) -> &mut WalkedFrame {
        // SAFETY: callers' indexes are below the capacity.
        unsafe { self.frames.get_unchecked_mut(number) }
    }

    /// Compares the present stack with the cached one, which is changed where they differ. Returns
    /// `false` if they differ in more than that, and the cached stack is invalid.
    #[inline(always)]
    fn compare<D: Dialect>(&mut self, scope: &mut Scope, first: Position) -> bool {
        let innermost = self.depth.wrapping_sub(1);
        let mut number = self.depth;
        if number == 0 || self.frame(innermost).position != first {
            match self.move_top::<D>(scope, first) {
                Some(base) => number = base,
                None => return false,
            }
        }
        // Whether the frame inwards of this one leads elsewhere than before.
        let mut is_moved = false;
        while number != 0 {
            number = number.wrapping_sub(1);
            let next = match number.checked_sub(1) {
                Some(outer) => self.frame(outer).position,
                None => END,
            };
            // SAFETY: the frame inwards of it leads there, or the thread's own state does, as
            // before.
            if is_moved || !unsafe { self.is_same::<D>(number, next) } {
                let Some(outer) = self.replace::<D>(scope, number) else { return false };
                is_moved = outer != next;
                if is_moved {
                    match number.checked_sub(1).filter(|_| outer != END) {
                        Some(number) => self.lay(number, outer),
                        None => return false,
                    }
                }
            }
            if D::LOOKS_OUTWARDS && !self.inner_fits(number) {
                let inner = number.wrapping_add(1);
                if self.replace::<D>(scope, inner).is_none() {
                    return false;
                }
            }
        }
        true
    }

    /// True if the facts about a frame that the frame inwards of it has are right. A wrong `false`
    /// is allowed.
    #[inline(always)]
    fn inner_fits(&mut self, number: usize) -> bool {
        let inner = number.wrapping_add(1);
        if inner >= self.depth {
            return true;
        }
        let &mut WalkedFrame { walked: Walked { more, calls, .. }, position: [_, thread, _], .. } =
            self.frame(inner);
        let outer = self.frame(number);
        let is_told = more == outer.walked.code && calls == outer.walked.at;
        is_told || (more == 0 && thread != outer.position[1])
    }

    /// See [`Dialect::is_same`].
    #[inline(always)]
    unsafe fn is_same<D: Dialect>(&mut self, number: usize, next: Position) -> bool {
        let Self { frames, walk, .. } = self;
        // SAFETY: the caller's conditions; and its indexes are below the capacity.
        unsafe { D::is_same(walk, frames.get_unchecked(number), next) }
    }

    /// Updates a cached frame at whose position another instruction or function is. Returns the
    /// position to which it leads; `None` if it cannot be read.
    #[inline(never)]
    fn replace<D: Dialect>(&mut self, scope: &mut Scope, number: usize) -> Option<Position> {
        let position = self.frame(number).position;
        let (walked, outer) = D::step(&mut self.walk, position)?;
        if walked == self.frame(number).walked {
            return Some(outer);
        }
        self.set::<D>(scope, number, walked, position);
        Some(outer)
    }

    /// Handles innermost frames that have come or gone. The cached frames become the known one that
    /// the present stack meets, those outwards of it, and the stack's frames inwards of it. Returns
    /// the number of frames to compare; `None` if no known frame is met.
    #[inline(never)]
    fn move_top<D: Dialect>(&mut self, scope: &mut Scope, first: Position) -> Option<usize> {
        let (mut position, mut count) = (first, 0_usize);
        let base = loop {
            if position == END {
                break 0;
            }
            if let Some(met) = self.number_at(position) {
                break met.wrapping_add(1);
            }
            if count >= MOVED_MAX {
                return None;
            }
            let (walked, next) = D::step(&mut self.walk, position)?;
            *self.walked.get_mut(count)? = (walked, position);
            count = count.wrapping_add(1);
            position = next;
        };
        if base.wrapping_add(count) > CAPACITY {
            return None;
        }
        self.set_depth(base);
        for inwards in (0..count).rev() {
            let (walked, position) = *self.walked.get(inwards)?;
            self.set::<D>(scope, self.depth, walked, position);
        }
        Some(base)
    }

    /// Returns the index of the frame that lies, or lay last, at a position.
    #[inline(always)]
    fn number_at(&mut self, position: Position) -> Option<usize> {
        let number = usize::from(*self.number_place(position)).checked_sub(1)?;
        (number < self.known && self.frame(number).position == position).then_some(number)
    }

    #[inline(always)]
    fn number_place(&mut self, [at, second, third]: Position) -> &mut u16 {
        let spread = second.wrapping_mul(0xd6e8_feb8_6659_fd93).wrapping_add(third);
        let hash = (at ^ spread.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // SAFETY: inside the array.
        unsafe { self.numbers.get_unchecked_mut((hash >> 40) % NUMBERS) }
    }

    /// Makes the first `depth` known frames the cached ones.
    #[inline(always)]
    fn set_depth(&mut self, depth: usize) {
        while self.depth > depth {
            self.depth = self.depth.wrapping_sub(1);
            let &mut WalkedFrame { part, place, .. } = self.frame(self.depth);
            self.sum = self.sum.wrapping_sub(part);
            self.shown = self.shown.wrapping_sub(usize::from(place != 0));
        }
        while self.depth < depth {
            let &mut WalkedFrame { part, place, .. } = self.frame(self.depth);
            self.sum = self.sum.wrapping_add(part);
            self.shown = self.shown.wrapping_add(usize::from(place != 0));
            self.depth = self.depth.wrapping_add(1);
        }
    }

    /// Reads the whole stack. At a frame that cannot be read the stack ends, without its outer
    /// frames.
    #[cold]
    #[inline(never)]
    fn walk_anew<D: Dialect>(&mut self, scope: &mut Scope, first: Position) {
        let (mut position, mut count) = (first, 0_usize);
        self.is_cut = false;
        while position != END {
            let step = D::step(&mut self.walk, position);
            let (Some((walked, next)), Some(out)) = (step, self.walked.get_mut(count)) else {
                self.is_cut = true;
                break;
            };
            *out = (walked, position);
            count = count.wrapping_add(1);
            position = next;
        }
        self.set_depth(count.min(self.known));
        self.known = self.depth;
        for number in 0..count {
            let inwards = count.wrapping_sub(1).wrapping_sub(number);
            let Some(&(walked, position)) = self.walked.get(inwards) else { return };
            if number >= self.depth || walked != self.frame(number).walked {
                self.set::<D>(scope, number, walked, position);
            } else {
                self.lay(number, position);
            }
        }
    }

    /// Notes that a frame lies at a position.
    fn lay(&mut self, number: usize, position: Position) {
        self.frame(number).position = position;
        *self.number_place(position) = (number as u16).wrapping_add(1);
    }

    /// Stores another frame at an index.
    #[inline(never)]
    fn set<D: Dialect>(&mut self, scope: &mut Scope, number: usize, walked: Walked, position: Position) {
        let place = if walked.is_shown {
            self.describing.place::<D>(scope, &mut self.walk.readable, &walked)
        } else {
            0
        };
        let is_entry = u64::from(walked.is_entry);
        let part = tree::part_hash(number, place | 1, is_entry << 1 | u64::from(place == 0));
        let Some(frame) = self.frames.get_mut(number) else { return };
        if number < self.depth {
            self.sum = self.sum.wrapping_sub(frame.part);
            self.shown = self.shown.wrapping_sub(usize::from(frame.place != 0));
        }
        *frame = WalkedFrame { walked, position, place, part, join: 0 };
        self.sum = self.sum.wrapping_add(part);
        self.shown = self.shown.wrapping_add(usize::from(place != 0));
        self.depth = self.depth.max(number.wrapping_add(1));
        self.known = self.known.max(self.depth);
        self.lay(number, position);
    }

    /// Gives each frame the native position of the call that runs it; `calls` begins with the
    /// innermost.
    pub(crate) fn join(&mut self, mut calls: impl Iterator<Item = usize>) {
        let mut join = calls.next().unwrap_or(usize::MAX);
        for frame in self.frames.get_mut(..self.depth).unwrap_or_default().iter_mut().rev() {
            frame.join = join;
            if frame.walked.is_entry {
                join = calls.next().unwrap_or(usize::MAX);
            }
        }
    }
}
