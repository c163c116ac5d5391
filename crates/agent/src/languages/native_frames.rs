//! Native frames of a thread's last stack that stand for functions of a virtual machine's language,
//! with these functions.
//!
//! ```text
//! frames  outermost  [index 2: main]  [index 5: work, each]  innermost
//! places             main:60          work:41  each:12
//! ```
//! The indexes are those of native frames.

use core::sync::atomic::Ordering::Relaxed;

use crate::frames::frame::Frame;
use crate::languages::pairs::{Pair, Pairs};
use crate::languages::path::Path;
use crate::state::AGENT;
use crate::tree;

/// Largest number of native frames that stand for functions, in one stack.
const CAPACITY: usize = 1 << 14;
/// Largest number of functions in one stack.
const PLACES: usize = 1 << 15;
/// Number of native stacks without such frames that are cached.
const NONES: usize = 1024;

/// A native frame that stands for functions, or for code that is not shown. `D`: facts by which it
/// is recognised.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct NativeFrame<D> {
    /// Index of the native frame, from the outer end.
    pub(super) index: u32,
    /// Index of its first function in `places`.
    first: u32,
    count: u32,
    /// The frame's part of the stack's hash.
    pub(super) part: u64,
    pub(super) facts: D,
}

/// The frames of a level. All zero: empty.
#[derive(Debug)]
#[repr(C)]
pub(super) struct NativeFrames<D> {
    depth: usize,
    places_end: usize,
    hash: u64,
    /// The epoch of the process's code at the last event.
    epoch: u32,
    frames: [NativeFrame<D>; CAPACITY],
    /// The functions of all frames; those of each frame begin with the outermost.
    places: [u64; PLACES],
    pub(super) pairs: Pairs,
    nones: [u32; NONES],
}

impl<D: Copy> NativeFrames<D> {
    /// True if code was loaded or freed since the last event. The cached stacks without frames are
    /// dropped then.
    #[inline(always)]
    pub(super) fn enters_epoch(&mut self) -> bool {
        let epoch = AGENT.code_epoch.load(Relaxed);
        if self.epoch == epoch {
            return false;
        }
        self.epoch = epoch;
        self.nones.fill(0);
        true
    }

    /// True if the native stack of a node is known to have no such frames.
    #[inline(always)]
    pub(super) fn has_none(&self, native: u32) -> bool {
        self.nones.get(native as usize % NONES).is_some_and(|&none| none == native)
    }

    /// Notes that the native stack of a node has no such frames.
    #[inline(always)]
    pub(super) fn note_none(&mut self, native: u32) {
        if let Some(none) = self.nones.get_mut(native as usize % NONES) {
            *none = native;
        }
    }

    /// Returns the hash of the frames; 0 without frames.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the number of frames.
    #[inline(always)]
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the frames, outermost first.
    #[inline(always)]
    pub(super) fn frames(&self) -> &[NativeFrame<D>] {
        self.frames.get(..self.depth).unwrap_or_default()
    }

    /// Returns the functions of a frame, the outermost first.
    fn places_of(&self, frame: &NativeFrame<D>) -> &[u64] {
        let first = frame.first as usize;
        self.places.get(first..first.wrapping_add(frame.count as usize)).unwrap_or_default()
    }

    /// Drops all frames.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        (self.depth, self.places_end, self.hash) = (0, 0, 0);
    }

    /// Drops the frames from one on.
    pub(super) fn drop_from(&mut self, depth: usize) {
        for frame in self.frames.get(depth..self.depth).unwrap_or_default() {
            self.hash = self.hash.wrapping_sub(frame.part);
        }
        if let Some(first) = self.frames.get(depth).filter(|_| depth < self.depth) {
            self.places_end = first.first as usize;
            self.depth = depth;
        }
    }

    /// Room for the functions of the next frame.
    #[inline(always)]
    pub(super) fn room(&mut self) -> &mut [u64] {
        self.places.get_mut(self.places_end..).unwrap_or_default()
    }

    /// Adds a native frame that stands for the first `count` functions in the room. Too many frames
    /// are left out.
    #[inline(always)]
    pub(super) fn push(&mut self, index: usize, count: usize, facts: D) {
        let Some(frame) = self.frames.get_mut(self.depth) else { return };
        let first = self.places_end;
        let end = first.wrapping_add(count);
        let salt = (index as u64).wrapping_add(1) << 1;
        let mut part = tree::part_hash(index, 1, salt);
        for (number, &place) in self.places.get(first..end).unwrap_or_default().iter().enumerate() {
            part = part.wrapping_add(tree::part_hash(first.wrapping_add(number), place, salt));
        }
        *frame = NativeFrame { index: index as u32, first: first as u32, count: count as u32, part, facts };
        self.depth = self.depth.wrapping_add(1);
        self.places_end = end;
        self.hash = self.hash.wrapping_add(part);
    }

    /// Puts the functions in place of the native frames that stand for them. Returns the node of
    /// the joined stack, which is stored under `pair`; `None` if it cannot be made.
    #[cold]
    #[inline(never)]
    pub(super) fn join(&mut self, natives: &[Frame], pair: Pair) -> Option<u32> {
        let depth = natives.len().wrapping_add(self.places_end).wrapping_sub(self.depth);
        let mut path = Path::of_frames(depth);
        let mut frames = self.frames().iter().peekable();
        for (index, native) in natives.iter().enumerate() {
            match frames.next_if(|frame| frame.index as usize == index) {
                // Plus one, like a return address, which lies after its call.
                Some(frame) => self.places_of(frame).iter().for_each(|place| path.add(place.wrapping_add(1))),
                None => path.add(native.pc as u64),
            }
        }
        let node = path.finish(pair.hash())?;
        self.pairs.keep(pair, node);
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use heapr_ring::sys;

    use super::*;

    fn empty() -> &'static mut NativeFrames<()> {
        let memory = sys::map_anonymous(size_of::<NativeFrames<()>>(), true).unwrap();
        // SAFETY: a mapping of this size, which is never unmapped; all zero is empty.
        unsafe { &mut *memory.cast() }
    }

    fn push(frames: &mut NativeFrames<()>, index: usize, places: &[u64]) {
        frames.room()[..places.len()].copy_from_slice(places);
        frames.push(index, places.len(), ());
    }

    #[test]
    fn dropped_frames_leave_what_was_there_before_them() {
        let (frames, anew) = (empty(), empty());
        push(frames, 2, &[7]);
        push(frames, 5, &[8, 9]);
        let before = frames.hash();
        push(frames, 6, &[10, 11, 12]);
        push(frames, 9, &[]);
        assert_ne!(frames.hash(), before);
        frames.drop_from(2);
        assert_eq!((frames.hash(), frames.depth(), frames.places_end), (before, 2, 3));
        frames.drop_from(2);
        push(frames, 6, &[13]);
        for (index, places) in [(2, &[7][..]), (5, &[8, 9]), (6, &[13])] {
            push(anew, index, places);
        }
        assert_eq!((frames.hash(), frames.places_end), (anew.hash(), anew.places_end));
        let places: Vec<&[u64]> = frames.frames().iter().map(|frame| frames.places_of(frame)).collect();
        assert_eq!(places, [&[7][..], &[8, 9], &[13]]);
        frames.drop_from(0);
        assert_eq!((frames.hash(), frames.depth(), frames.places_end), (0, 0, 0));
    }

    #[test]
    fn a_frame_without_functions_counts_as_one() {
        let frames = empty();
        push(frames, 0, &[]);
        assert_ne!(frames.hash(), 0);
        let first = frames.hash();
        frames.clear();
        push(frames, 1, &[]);
        assert!(frames.hash() != 0 && frames.hash() != first);
    }

    #[test]
    fn frames_over_the_capacity_are_left_out() {
        let frames = empty();
        for index in 0..CAPACITY {
            push(frames, index, &[]);
        }
        let full = frames.hash();
        push(frames, CAPACITY, &[1]);
        assert_eq!((frames.hash(), frames.depth(), frames.places_end), (full, CAPACITY, 0));
    }
}
