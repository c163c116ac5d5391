//! The cached Python stack of a thread's level; the present stack is read at the cost of what
//! changed.
//!
//! ```text
//! cached  outermost                                  innermost
//!         [<module>:60] [fill:12] [features:41]
//! now     [<module>:60] [fill:13] [features:41] [scale:7]
//!                          ^ updated              ^ new
//! ```
//!
//! Each frame of the present stack is read and compared, from the innermost outwards. The
//! comparison covers its address, code, instruction, the frame outwards of it, and the check that
//! distinguishes code at the same address. An unchanged frame has the same function and line, but
//! no frame is assumed unchanged. The hash of a stack is the sum of all frames' parts, which depend
//! on the depth, so that a change costs one frame.

use heapr_ring::sys;

use crate::languages::pairs::Pairs;
use crate::languages::python::frame::{FrameNow, PythonFrame, check_of, is_last};
use crate::languages::python::layout::{Layout, Style};
use crate::languages::python::reading::{Reading, part};
use crate::languages::python::thread::State;
use crate::languages::readable::word;
use crate::record::thread::Scope;

const FIRST_CAPACITY: usize = 512;
/// Largest number of frames of a stack that are read (ten times the interpreter's default limit).
const DEPTH_MAX: usize = 1 << 16;
/// Largest number of innermost frames that may be gone or new without reading the stack anew.
const MOVED_MAX: usize = 16;

/// The cached frames of a level. All zero: empty.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CachedPython {
    /// Cached frames, outermost first; `depth` of them.
    frames: *mut PythonFrame,
    capacity: usize,
    depth: usize,
    hash: u64,
    pub(crate) pairs: Pairs,
    /// Room for the results of [`CachedPython::find_joins`].
    joins: *mut usize,
    reading: Reading,
}

impl CachedPython {
    /// Returns the hash of the cached stack; 0 if there are no frames.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "the array is a mapping of its own, used by one hook at a time")]
    unsafe fn frame(&self, index: usize) -> &mut PythonFrame {
        // SAFETY: callers' indices are below the capacity.
        unsafe { &mut *self.frames.add(index) }
    }

    /// Makes the cached stack equal to the present one.
    #[inline(always)]
    pub(crate) fn follow(&mut self, scope: &mut Scope, layout: &Layout) {
        let first = match State::current(layout, &mut self.reading.readable) {
            Some(state) => self.enter(state, layout),
            None => 0,
        };
        if first == 0 {
            (self.depth, self.hash) = (0, 0);
            return;
        }
        let is_kept = self.depth != 0 && {
            match layout.style {
                Style::Objects => self.compare::<0>(scope, layout, first),
                Style::Marked => self.compare::<1>(scope, layout, first),
                Style::Shim => self.compare::<2>(scope, layout, first),
                Style::Unlocked => self.compare::<3>(scope, layout, first),
            }
        };
        if !is_kept {
            self.read_anew(scope, layout, first);
        }
    }

    /// Returns a thread state's innermost frame, and makes its interpreter the current one for code
    /// versions.
    #[inline(always)]
    fn enter(&mut self, state: State, layout: &Layout) -> usize {
        let interpreter = state.interpreter_part(&mut self.reading.readable);
        if self.reading.interpreter != interpreter {
            // Code of another interpreter may have the same address and version.
            self.reading.interpreter = interpreter;
            (self.depth, self.hash) = (0, 0);
        }
        state.frame(layout).0
    }

    /// Compares the present stack with the cached one, which is changed where they differ. Returns
    /// `false` if they differ in more than that, and the cached stack is invalid.
    ///
    /// Each frame's address is taken from the cache, because the frame inwards of it has just been
    /// found to lead there. So no read depends on another.
    #[inline(always)]
    fn compare<const STYLE: u8>(&mut self, scope: &mut Scope, layout: &Layout, first: usize) -> bool {
        // SAFETY: below the depth.
        if unsafe { self.frame(self.depth.wrapping_sub(1)) }.address != first
            && !self.move_top(scope, layout, first)
        {
            return false;
        }
        let outermost = self.frames;
        // SAFETY: there is at least one frame.
        let mut at = unsafe { outermost.add(self.depth.wrapping_sub(1)) };
        loop {
            // SAFETY: one of the cached frames.
            let kept = unsafe { &*at };
            // SAFETY: a frame was read at this address, and one of the thread's frames is there
            // now, whose fields have the same offsets.
            let now = unsafe { FrameNow::read::<STYLE>(layout, kept.address) };
            // SAFETY: the cached frame's code is the present one's, which holds it.
            let is_same = now.leads::<STYLE>(kept) && unsafe { check_of::<STYLE>(kept.code) } == kept.check;
            if !is_same || now.instruction != kept.instruction {
                // SAFETY: both are cached frames.
                let index = unsafe { at.offset_from_unsigned(outermost) };
                let instruction = is_same.then_some(now.instruction);
                if !self.change::<STYLE>(scope, layout, index, instruction) {
                    return false;
                }
            }
            // A cached frame still leads where it led when it was read: to the next one. Only a
            // frame on the evaluating function's stack may lie between them.
            // SAFETY: one of the cached frames, as before.
            let kept = unsafe { &*at };
            if STYLE >= 2 && kept.is_entry && at != outermost {
                // SAFETY: that frame, which was read before; the next cached one.
                let is_next = unsafe {
                    word(kept.previous.wrapping_add(layout.previous)) == (*at.wrapping_sub(1)).address
                };
                if !is_next {
                    return false;
                }
            }
            if at == outermost {
                break;
            }
            at = at.wrapping_sub(1);
        }
        // SAFETY: below the depth, and a frame of the interpreter that was read before.
        unsafe {
            let kept = self.frame(0);
            let outer = if STYLE >= 2 && kept.is_entry {
                word(kept.previous.wrapping_add(layout.previous))
            } else {
                kept.previous
            };
            outer == 0 || is_last(layout, outer)
        }
    }

    /// Notes that a cached frame is at another instruction, or (`None`) that another one is at its
    /// address. Returns `false` if the cached stack is invalid.
    #[inline(never)]
    fn change<const STYLE: u8>(
        &mut self,
        scope: &mut Scope,
        layout: &Layout,
        index: usize,
        instruction: Option<usize>,
    ) -> bool {
        // SAFETY: below the depth.
        let &mut PythonFrame { address, code, check, .. } = unsafe { self.frame(index) };
        let Some(instruction) = instruction else {
            return self.replace(scope, layout, index, address) && self.leads_outwards::<STYLE>(index);
        };
        // SAFETY: the frame's code, as before.
        let place = unsafe { self.reading.place(scope, layout, (code, check, instruction)) };
        self.set_place(index, instruction, place);
        true
    }

    /// True if a frame that has just been read has the next cached one outwards of it.
    #[cold]
    #[inline(never)]
    fn leads_outwards<const STYLE: u8>(&self, index: usize) -> bool {
        let Some(outer) = index.checked_sub(1) else { return true };
        // SAFETY: below the depth.
        let (kept, next) = unsafe { (self.frame(index), self.frame(outer)) };
        // (A frame in between is checked in any case.)
        kept.previous == next.address || STYLE >= 2 && kept.is_entry
    }

    /// Notes that a cached frame is at another instruction.
    #[inline(always)]
    fn set_place(&mut self, index: usize, instruction: usize, place: u64) {
        // SAFETY: below the depth.
        let kept = unsafe { self.frame(index) };
        let part = part(index, place, kept.is_entry);
        let hash = self.hash.wrapping_sub(kept.part).wrapping_add(part);
        (kept.instruction, kept.place, kept.part) = (instruction, place, part);
        self.hash = hash;
    }

    /// Drops and adds innermost frames, so that the innermost one is at `first`.
    #[cold]
    #[inline(never)]
    fn move_top(&mut self, scope: &mut Scope, layout: &Layout, first: usize) -> bool {
        let mut new = [0_usize; MOVED_MAX];
        let mut count = 0;
        let mut at = self.reading.entered(layout, first);
        let base = loop {
            let lowest = self.depth.saturating_sub(MOVED_MAX);
            // SAFETY: below the depth.
            let met = (lowest..self.depth).rev().find(|&index| unsafe { self.frame(index) }.address == at);
            if let Some(index) = met {
                break index.wrapping_add(1);
            }
            let Some(place) = new.get_mut(count) else { return false };
            *place = at;
            count = count.wrapping_add(1);
            let Some(next) = self.reading.outwards(layout, at) else { return false };
            at = next;
            if at == 0 {
                return false;
            }
        };
        if base.wrapping_add(count) > self.capacity {
            return false;
        }
        for index in base..self.depth {
            // SAFETY: below the depth.
            self.hash = self.hash.wrapping_sub(unsafe { self.frame(index) }.part);
        }
        self.depth = base;
        for &address in new.iter().take(count).rev() {
            let Some(frame) = self.reading.whole_frame(scope, layout, self.depth, address) else {
                return false;
            };
            self.hash = self.hash.wrapping_add(frame.part);
            // SAFETY: below the capacity.
            unsafe { *self.frame(self.depth) = frame };
            self.depth = self.depth.wrapping_add(1);
        }
        true
    }

    /// Reads another function's frame at the address of a cached one, and replaces that.
    #[cold]
    #[inline(never)]
    fn replace(&mut self, scope: &mut Scope, layout: &Layout, index: usize, address: usize) -> bool {
        let Some(frame) = self.reading.whole_frame(scope, layout, index, address) else { return false };
        // SAFETY: below the depth.
        let kept = unsafe { self.frame(index) };
        let hash = self.hash.wrapping_sub(kept.part).wrapping_add(frame.part);
        *kept = frame;
        self.hash = hash;
        true
    }

    /// Reads the whole stack. At a frame that cannot be read the stack ends, without its outer
    /// frames.
    #[cold]
    #[inline(never)]
    pub(crate) fn read_anew(&mut self, scope: &mut Scope, layout: &Layout, first: usize) {
        (self.depth, self.hash) = (0, 0);
        let mut count = 0;
        let mut at = self.reading.entered(layout, first);
        while at != 0 && count < DEPTH_MAX {
            if count >= self.capacity && !self.grow(count) {
                break;
            }
            let Some(next) = self.reading.outwards(layout, at) else { break };
            // SAFETY: below the capacity.
            unsafe { self.frame(count) }.address = at;
            count = count.wrapping_add(1);
            at = next;
        }
        // Reverses the order, from innermost first to outermost first.
        for index in 0..count / 2 {
            let other = count.wrapping_sub(1).wrapping_sub(index);
            // SAFETY: both are below the count, and differ.
            unsafe { core::ptr::swap(self.frames.add(index), self.frames.add(other)) };
        }
        for index in 0..count {
            // SAFETY: below the count.
            let address = unsafe { self.frame(index) }.address;
            let Some(frame) = self.reading.whole_frame(scope, layout, index, address) else {
                (self.depth, self.hash) = (0, 0);
                return;
            };
            self.hash = self.hash.wrapping_add(frame.part);
            // SAFETY: as above.
            unsafe { *self.frame(index) = frame };
        }
        self.depth = count;
    }

    fn grow(&mut self, count: usize) -> bool {
        let capacity = self.capacity.wrapping_mul(2).max(FIRST_CAPACITY);
        let bytes = |capacity: usize| {
            capacity.wrapping_mul(size_of::<PythonFrame>().wrapping_add(size_of::<usize>()))
        };
        let Ok(memory) = sys::map_anonymous(bytes(capacity), true) else { return false };
        let frames = memory.cast::<PythonFrame>();
        // SAFETY: both have room for `count` frames; the old mapping is this level's alone.
        unsafe {
            if !self.frames.is_null() {
                core::ptr::copy_nonoverlapping(self.frames, frames, count);
                sys::unmap(self.frames.cast(), bytes(self.capacity));
            }
            self.joins = frames.add(capacity).cast();
        }
        (self.frames, self.capacity) = (frames, capacity);
        true
    }

    /// Reads the whole stack and returns its hash, to verify the cached one.
    pub(crate) fn hash_anew(&mut self, scope: &mut Scope, layout: &Layout) -> u64 {
        let kept = self.hash;
        if let Some(state) = State::current(layout, &mut self.reading.readable) {
            let first = self.enter(state, layout);
            self.read_anew(scope, layout, first);
        }
        core::mem::replace(&mut self.hash, kept)
    }

    /// Finds the native position of each cached frame: an address in the evaluating function's
    /// frame that runs it; 0 if unknown.
    pub(crate) fn find_joins(&mut self, layout: &Layout) -> (&[PythonFrame], &mut [usize], &mut Pairs) {
        if self.depth == 0 {
            return (&[], &mut [], &mut self.pairs);
        }
        let mut cframe = match State::current(layout, &mut self.reading.readable) {
            Some(state) => state.frame(layout).1,
            None => 0,
        };
        for index in (0..self.depth).rev() {
            // SAFETY: below the depth, for which there is room.
            let frame = unsafe { self.frame(index) };
            let join = match layout.style {
                Style::Objects => 0,
                Style::Marked => cframe,
                // The position of the run's outermost frame, which also holds for the frames
                // inwards of it.
                Style::Shim | Style::Unlocked if frame.is_entry => frame.previous,
                Style::Shim | Style::Unlocked => 0,
            };
            if layout.style == Style::Marked && frame.is_entry {
                let next = cframe.wrapping_add(layout.previous_cframe);
                cframe = self.reading.readable.word(next).unwrap_or(0);
            }
            // SAFETY: as above.
            unsafe { *self.joins.add(index) = join };
        }
        let mut join = 0;
        for index in 0..self.depth {
            // SAFETY: as above.
            unsafe {
                let place = self.joins.add(index);
                join = if *place == 0 { join } else { *place };
                *place = join;
            }
        }
        // SAFETY: `depth` were written, in a separate part of the mapping.
        unsafe {
            (
                core::slice::from_raw_parts(self.frames, self.depth),
                core::slice::from_raw_parts_mut(self.joins, self.depth),
                &mut self.pairs,
            )
        }
    }
}
