//! The cached JavaScript frames of a thread's level; the present ones are read at the cost of what
//! changed.
//!
//! A cached frame is valid if the native path to it and the data to which it points are unchanged.
//! The data are the function (with its name and script, as another may lie there now), and the
//! instruction or code. Native frames can be JavaScript's only if their code has no unwind tables.

use heapr_ring::sys;

use crate::arch::{FRAME_RECORD_BYTES, Rule};
use crate::frames::frame::Frame;
use crate::languages::pairs::Pairs;
use crate::languages::v8::finding::{Finder, Search, Words};
use crate::languages::v8::layout::Layout;
use crate::modules::rules;
use crate::record::events::Records;
use crate::record::thread::Scope;
use crate::stack::cached_rule;
use crate::state::AGENT;
use crate::tree;

/// Largest numbers, in one stack, of native frames that stand for JavaScript's, and of functions.
const CAPACITY: usize = 1 << 14;
const PLACES: usize = 1 << 15;
/// Number of stacks without such frames that are cached.
const NONES: usize = 1024;

/// A native frame that stands for functions of JavaScript.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct V8Frame {
    /// Index of the native frame, from the outer end.
    pub(crate) index: u32,
    /// Index of its first function in `places`.
    first: u32,
    count: u32,
    /// Hash of the native path to the frame.
    native_hash: u64,
    fp: usize,
    words: Words,
    /// The frame's part of the stack's hash.
    part: u64,
}

/// The cached frames of a level. All zero: empty.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CachedV8 {
    depth: usize,
    hash: u64,
    epoch: u32,
    native: u32,
    frames: [V8Frame; CAPACITY],
    places: [u64; PLACES],
    /// Number of native frames, from the outer end, that were searched for JavaScript frames, and
    /// the hash of the path to the last of them.
    covered: usize,
    covered_hash: u64,
    pub(crate) pairs: Pairs,
    /// Native stacks, and the index from which on no frame can be JavaScript's.
    plain_from: [(u32, u32); NONES],
    nones: [u32; NONES],
    finder: Finder,
}

impl CachedV8 {
    /// Maps a cache. It is wiped in a forked child, whose recorder's entry knows no functions yet.
    #[cold]
    pub(crate) fn allocate() -> *mut Self {
        sys::map_anonymous(size_of::<Self>(), true).map_or(core::ptr::null_mut(), <*mut u8>::cast)
    }

    /// True if the native stack of a node is known to have no JavaScript frames.
    #[inline(always)]
    pub(crate) fn has_none(&mut self, native: u32) -> bool {
        let epoch = AGENT.code_epoch.load(core::sync::atomic::Ordering::Relaxed);
        if self.epoch != epoch {
            self.epoch = epoch;
            self.nones.fill(0);
            self.plain_from.fill((0, 0));
            self.finder.forget();
            self.forget();
        }
        self.nones.get(native as usize % NONES).is_some_and(|&none| none == native)
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Drops the cached stack.
    pub(crate) fn forget(&mut self) {
        (self.depth, self.hash, self.native, self.covered) = (0, 0, 0, 0);
    }

    pub(crate) fn frames(&self) -> &[V8Frame] {
        self.frames.get(..self.depth).unwrap_or_default()
    }

    /// Returns the functions of a frame, the outermost first.
    pub(crate) fn places_of(&self, frame: &V8Frame) -> &[u64] {
        let first = frame.first as usize;
        self.places.get(first..first.wrapping_add(frame.count as usize)).unwrap_or_default()
    }

    /// Returns the number of frames that a joined stack has in addition to the native ones.
    pub(crate) fn more_frames(&self) -> usize {
        self.places_end(self.depth).saturating_sub(self.depth)
    }

    fn places_end(&self, depth: usize) -> usize {
        let last = depth.checked_sub(1).and_then(|last| self.frames.get(last));
        last.map_or(0, |frame| frame.first.wrapping_add(frame.count) as usize)
    }

    /// Makes the cached frames those of the level's cached native stack, whose node is `native`.
    #[inline(always)]
    pub(crate) fn follow(&mut self, scope: &mut Scope, layout: &'static Layout, native: u32) {
        let kept = &scope.level().kept;
        // SAFETY: `depth` frames are cached, and no code here changes them.
        let natives: &[Frame] = unsafe { core::slice::from_raw_parts(kept.frames, kept.depth) };
        let mut stands = 0;
        while let Some(frame) = self.frames.get(stands).filter(|_| stands < self.depth) {
            let is_there = natives
                .get(frame.index as usize)
                .is_some_and(|native| native.hash == frame.native_hash && native.bp == frame.fp);
            let pc = natives.get(frame.index as usize).map_or(0, |native| native.pc);
            // SAFETY: a frame of JavaScript on the calling thread's stack: it was one, and the same
            // code has the same frame pointer here.
            let is_same = is_there && unsafe { frame.words.still_stand(layout, frame.fp, pc) };
            if !is_same {
                break;
            }
            stands = stands.wrapping_add(1);
        }
        if stands == self.depth && self.native == native {
            return;
        }
        self.native = native;
        self.drop_from(stands);
        let first = stands.checked_sub(1).and_then(|last| self.frames.get(last));
        let first = first.map_or(0, |frame| (frame.index as usize).wrapping_add(1));
        let mut may_have = self.depth != 0;
        let mut plain_from = first;
        let mut has_failed = false;
        for (index, native) in natives.iter().enumerate().skip(first) {
            let rule = match cached_rule(&scope.level().kept, native.pc) {
                Some(rule) => Some(rule),
                // Another address has displaced its entry.
                None => rules::look_up(native.pc as u64, &mut Records { scope }),
            };
            if rule != Some(Rule::FRAME_POINTER) {
                continue;
            }
            may_have = true;
            plain_from = index.wrapping_add(1);
            let outer = index.checked_sub(1).and_then(|outer| natives.get(outer));
            if outer.is_some_and(|outer| outer.sp == native.bp.wrapping_add(FRAME_RECORD_BYTES)) {
                has_failed |= self.push(scope, layout, index, native);
            }
        }
        self.covered = if has_failed { 0 } else { natives.len() };
        self.covered_hash = natives.last().map_or(0, |last| last.hash);
        if let Some(place) = self.plain_from.get_mut(native as usize % NONES) {
            *place = (native, plain_from as u32);
        }
        if has_failed {
            // The collector may be at work: the next stack is searched anew.
            self.native = 0;
        }
        if !may_have && let Some(none) = self.nones.get_mut(native as usize % NONES) {
            *none = native;
        }
    }

    /// Returns the hash of the JavaScript frames of a node's native stack, whose frames up to index
    /// `base` are cached. Returns `None` if these may not be all of the stack's frames, or have
    /// changed.
    ///
    /// The result must be the hash that [`Self::follow`] would give; `HEAPR_VERIFY` compares.
    #[inline(always)]
    pub(crate) fn hash_from(
        &self,
        scope: &mut Scope,
        layout: &'static Layout,
        (native, base): (u32, usize),
    ) -> Option<u64> {
        let &(known, plain_from) = self.plain_from.get(native as usize % NONES)?;
        let kept = &scope.level().kept;
        // SAFETY: `depth` frames are cached, and no code here changes them.
        let natives: &[Frame] = unsafe { core::slice::from_raw_parts(kept.frames, kept.depth) };
        let last = self.covered.checked_sub(1)?;
        let is_covered = known == native
            && plain_from as usize <= base.wrapping_add(1)
            && last >= base
            && natives.get(last)?.hash == self.covered_hash;
        if !is_covered {
            return None;
        }
        let mut hash = 0_u64;
        for frame in self.frames() {
            let index = frame.index as usize;
            if index > base {
                break;
            }
            let native = natives.get(index)?;
            // SAFETY: as in `follow`.
            let stands = native.hash == frame.native_hash
                && native.bp == frame.fp
                && unsafe { frame.words.still_stand(layout, frame.fp, native.pc) };
            if !stands {
                return None;
            }
            hash = hash.wrapping_add(frame.part);
        }
        Some(hash)
    }

    /// Drops the cached frames from one on.
    fn drop_from(&mut self, depth: usize) {
        for frame in self.frames.get(depth..self.depth).unwrap_or_default() {
            self.hash = self.hash.wrapping_sub(frame.part);
        }
        self.depth = depth;
    }

    /// Adds a native frame without unwind tables, if it is a JavaScript frame whose name is found.
    /// Returns true if it may be one and could not be read.
    #[inline(never)]
    fn push(&mut self, scope: &mut Scope, layout: &'static Layout, index: usize, native: &Frame) -> bool {
        let words = match self.finder.words_of(layout, native) {
            Search::Found(words) => words,
            Search::Other => return false,
            Search::Failed => return true,
        };
        let first = self.places_end(self.depth);
        let out = self.places.get_mut(first..).unwrap_or_default();
        let count = self.finder.find_places(scope, layout, (native, &words), out);
        if count == 0 || self.depth >= CAPACITY {
            return false;
        }
        let end = first.wrapping_add(count);
        let mut part = 0_u64;
        for (number, &place) in self.places.get(first..end).unwrap_or_default().iter().enumerate() {
            let salt = (index as u64).wrapping_add(1) << 1;
            part = part.wrapping_add(tree::part_hash(first.wrapping_add(number), place, salt));
        }
        let Some(frame) = self.frames.get_mut(self.depth) else { return false };
        *frame = V8Frame {
            index: index as u32,
            first: first as u32,
            count: count as u32,
            native_hash: native.hash,
            fp: native.bp,
            words,
            part,
        };
        self.hash = self.hash.wrapping_add(part);
        self.depth = self.depth.wrapping_add(1);
        false
    }
}
