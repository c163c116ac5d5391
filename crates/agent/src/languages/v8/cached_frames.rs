//! The cached JavaScript frames of a thread's level; the present ones are read at the cost of what
//! changed.
//!
//! A cached frame is valid if the native path to it and the data to which it points are unchanged.
//! The data are the function (with its name and script, as another may lie there now), and the
//! instruction or code. Native frames can be JavaScript's only if their code has no unwind tables.

use crate::arch::{FRAME_RECORD_BYTES, Rule};
use crate::frames::frame::Frame;
use crate::languages::level_cache;
use crate::languages::native_frames::NativeFrames;
use crate::languages::v8::finding::{Finder, Search, Words};
use crate::languages::v8::layout::Layout;
use crate::modules::rules;
use crate::record::thread::Scope;
use crate::record::writing::Records;
use crate::stack::cached_rule;

/// Number of native stacks whose innermost frames are known not to be JavaScript's.
const PLAIN: usize = 1024;

/// Facts by which a cached frame is recognised.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Facts {
    /// Hash of the native path to the frame.
    native_hash: u64,
    fp: usize,
    words: Words,
}

/// The cached frames of a level. All zero: empty.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CachedV8 {
    pub(super) frames: NativeFrames<Facts>,
    /// Node of the native stack that the frames are of.
    native: u32,
    /// Number of native frames, from the outer end, that were searched for JavaScript frames, and
    /// the hash of the path to the last of them.
    covered: usize,
    covered_hash: u64,
    /// Native stacks, and the index from which on no frame can be JavaScript's.
    plain_from: [(u32, u32); PLAIN],
    finder: Finder,
}

impl CachedV8 {
    /// True if the native stack of a node is known to have no JavaScript frames.
    #[inline(always)]
    pub(crate) fn has_none(&mut self, native: u32) -> bool {
        if self.frames.enters_epoch() {
            self.plain_from.fill((0, 0));
            self.finder.forget();
            self.forget();
        }
        self.frames.has_none(native)
    }

    /// Drops the cached stack.
    pub(crate) fn forget(&mut self) {
        self.frames.clear();
        (self.native, self.covered) = (0, 0);
    }

    /// Makes the cached frames those of the level's cached native stack, whose node is `native`.
    #[inline(always)]
    pub(crate) fn follow(&mut self, scope: &mut Scope, layout: &'static Layout, native: u32) {
        // SAFETY: no code here changes the cached stack.
        let natives = unsafe { level_cache::natives(scope) };
        let stands = self.frames.frames().iter().take_while(|frame| {
            let native = natives.get(frame.index as usize);
            // SAFETY: a frame of JavaScript on the calling thread's stack: it was one, and the same
            // code has the same frame pointer here.
            native.is_some_and(|native| unsafe { frame.facts.still_stand(layout, native) })
        });
        let stands = stands.count();
        if stands == self.frames.depth() && self.native == native {
            return;
        }
        self.native = native;
        self.frames.drop_from(stands);
        let last = self.frames.frames().last();
        let first = last.map_or(0, |frame| (frame.index as usize).wrapping_add(1));
        let mut may_have = self.frames.depth() != 0;
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
        if let Some(place) = self.plain_from.get_mut(native as usize % PLAIN) {
            *place = (native, plain_from as u32);
        }
        if has_failed {
            // The collector may be at work: the next stack is searched anew.
            self.native = 0;
        }
        if !may_have {
            self.frames.note_none(native);
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
        let &(known, plain_from) = self.plain_from.get(native as usize % PLAIN)?;
        // SAFETY: no code here changes the cached stack.
        let natives = unsafe { level_cache::natives(scope) };
        let last = self.covered.checked_sub(1)?;
        let is_covered = known == native
            && plain_from as usize <= base.wrapping_add(1)
            && last >= base
            && natives.get(last)?.hash == self.covered_hash;
        if !is_covered {
            return None;
        }
        let mut hash = 0_u64;
        for frame in self.frames.frames() {
            let index = frame.index as usize;
            if index > base {
                break;
            }
            let native = natives.get(index)?;
            // SAFETY: as in `follow`. The path to the frame is the same, being part of the covered
            // one.
            if !unsafe { frame.facts.still_stand_here(layout, native) } {
                return None;
            }
            hash = hash.wrapping_add(frame.part);
        }
        Some(hash)
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
        let count = self.finder.find_places(scope, layout, (native, &words), self.frames.room());
        if count != 0 {
            self.frames.push(index, count, Facts { native_hash: native.hash, fp: native.bp, words });
        }
        false
    }
}

impl Facts {
    /// True if the frame is the present one of a native frame.
    ///
    /// # Safety
    /// 1. A native frame with the same path and frame pointer is a frame of JavaScript.
    #[inline(always)]
    unsafe fn still_stand(&self, layout: &'static Layout, native: &Frame) -> bool {
        // SAFETY: the caller's condition.
        native.hash == self.native_hash && unsafe { self.still_stand_here(layout, native) }
    }

    /// True if the frame is the present one of a native frame with the same path.
    ///
    /// # Safety
    /// 1. A native frame with the same path and frame pointer is a frame of JavaScript.
    #[inline(always)]
    unsafe fn still_stand_here(&self, layout: &'static Layout, native: &Frame) -> bool {
        // SAFETY: the caller's condition.
        native.bp == self.fp && unsafe { self.words.still_stand(layout, self.fp, native.pc) }
    }
}
