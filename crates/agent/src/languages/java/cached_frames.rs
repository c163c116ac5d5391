//! The cached Java frames of a thread's last stack, and the cache of code's functions.

use heapr_ring::sys;

use crate::arch::Rule;
use crate::arch::runtime_frames::java::{INSTRUCTION_BELOW, METHOD_BELOW};
use crate::frames::frame::Frame;
use crate::languages::java::inlined::{self, Call, Code, INLINED_MAX};
use crate::languages::java::method::{Method, Texts};
use crate::languages::pairs::Pairs;
use crate::languages::readable::Readable;
use crate::modules::java_code::{self, JavaCode};
use crate::modules::java_layout::Layout;
use crate::modules::rules;
use crate::record::thread::Scope;
use crate::state::AGENT;
use crate::tree;

/// Largest numbers, in one stack, of native frames that stand for Java's, and of Java functions.
const CAPACITY: usize = 1 << 14;
const PLACES: usize = 1 << 15;
/// Sizes of the caches: stacks without Java frames, frames, and these frames' functions.
const NONES: usize = 1024;
const ANSWERS: usize = 4096;
const ANSWERED: usize = 1 << 15;

/// A native frame that stands for one or more methods, or for none.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct JavaFrame {
    /// Index of the native frame, from the outer end.
    pub(crate) index: u32,
    /// Index of its first function in `places`.
    first: u32,
    count: u32,
}

/// Functions that a frame stood for.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Answer {
    key: u64,
    first: u32,
    count: u32,
}

/// Result of looking for a stack's Java frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Followed {
    Found,
    None,
    /// The native stack was unwound by rules of code that is freed.
    CodeHasChanged,
}

/// The cached frames of a level. All zero: empty.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CachedJava {
    depth: usize,
    places_end: usize,
    hash: u64,
    epoch: u32,
    frames: [JavaFrame; CAPACITY],
    /// The functions of all frames; those of each frame begin with the outermost.
    places: [u64; PLACES],
    pub(crate) pairs: Pairs,
    nones: [u32; NONES],
    answers: [Answer; ANSWERS],
    answered: [u64; ANSWERED],
    answered_end: usize,
    readable: Readable,
    texts: Texts,
}

impl CachedJava {
    /// Maps a cache. It is wiped in a forked child, whose recorder's entry knows no functions yet.
    #[cold]
    pub(crate) fn allocate() -> *mut Self {
        sys::map_anonymous(size_of::<Self>(), true).map_or(core::ptr::null_mut(), <*mut u8>::cast)
    }

    /// True if the native stack of a node is known to have no Java frames.
    #[inline(always)]
    pub(crate) fn has_none(&mut self, native: u32) -> bool {
        let epoch = AGENT.code_epoch.load(core::sync::atomic::Ordering::Relaxed);
        if self.epoch != epoch {
            self.epoch = epoch;
            self.nones.fill(0);
        }
        self.nones.get(native as usize % NONES).is_some_and(|&none| none == native)
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn frames(&self) -> &[JavaFrame] {
        self.frames.get(..self.depth).unwrap_or_default()
    }

    /// Returns the functions of a frame, the outermost first.
    pub(crate) fn places_of(&self, frame: &JavaFrame) -> &[u64] {
        let first = frame.first as usize;
        self.places.get(first..first.wrapping_add(frame.count as usize)).unwrap_or_default()
    }

    /// Returns the number of frames of a joined stack with `natives` native ones.
    pub(crate) fn whole_depth(&self, natives: usize) -> usize {
        natives.wrapping_add(self.places_end).wrapping_sub(self.depth)
    }

    /// Drops the cached functions, so that each is determined anew.
    pub(crate) fn forget_answers(&mut self) {
        self.answers.iter_mut().for_each(|answer| answer.key = 0);
        self.answered_end = 0;
    }

    /// Finds the Java frames of the level's cached native stack, whose node is `native`.
    #[inline(always)]
    pub(crate) fn follow(&mut self, scope: &mut Scope, layout: &'static Layout, native: u32) -> Followed {
        let kept = &scope.level().kept;
        // SAFETY: `depth` frames are cached, and no code here changes them.
        let natives: &[Frame] = unsafe { core::slice::from_raw_parts(kept.frames, kept.depth) };
        (self.depth, self.places_end, self.hash) = (0, 0, 0);
        let mut is_any = false;
        for (index, frame) in natives.iter().enumerate() {
            if !java_code::may_hold(layout, frame.pc) {
                continue;
            }
            is_any = true;
            let Some(code) = java_code::find_in(layout, frame.pc) else { continue };
            // The rules of all threads come from this cache.
            let rule = rules::cached(frame.pc as u64);
            if rule.is_some_and(|rule| rule != code.rule().unwrap_or(Rule::FRAME_POINTER)) {
                return Followed::CodeHasChanged;
            }
            let outer = index.checked_sub(1).and_then(|outer| natives.get(outer));
            self.push(scope, layout, (index, frame, outer), code);
        }
        if !is_any && let Some(none) = self.nones.get_mut(native as usize % NONES) {
            *none = native;
        }
        if is_any { Followed::Found } else { Followed::None }
    }

    /// Adds a native frame that stands for methods, or for code that is not shown.
    #[inline(always)]
    fn push(
        &mut self,
        scope: &mut Scope,
        layout: &'static Layout,
        (index, native, outer): (usize, &Frame, Option<&Frame>),
        code: JavaCode,
    ) {
        let first = self.places_end;
        let count = match code {
            JavaCode::Interpreter => self.interpreted(scope, layout, native, outer),
            JavaCode::Compiled { blob, .. } => self.compiled(scope, layout, blob, native),
            JavaCode::Stub { .. } => Some(0),
        };
        let Some(count) = count else { return };
        let Some(frame) = self.frames.get_mut(self.depth) else { return };
        *frame = JavaFrame { index: index as u32, first: first as u32, count: count as u32 };
        self.depth = self.depth.wrapping_add(1);
        let salt = (index as u64).wrapping_add(1) << 1;
        let mut hash = tree::part_hash(index, 1, salt);
        let end = first.wrapping_add(count);
        for (number, &place) in self.places.get(first..end).unwrap_or_default().iter().enumerate() {
            hash = hash.wrapping_add(tree::part_hash(first.wrapping_add(number), place, salt));
        }
        self.places_end = end;
        self.hash = self.hash.wrapping_add(hash);
    }

    /// Adds the method of an interpreter frame. Returns the number of functions added; `None` if
    /// the frame is not valid.
    fn interpreted(
        &mut self,
        scope: &mut Scope,
        layout: &'static Layout,
        native: &Frame,
        outer: Option<&Frame>,
    ) -> Option<usize> {
        let fp = native.bp;
        let is_frame = fp & 7 == 0
            && fp.checked_sub(INSTRUCTION_BELOW)? >= native.sp
            && outer.is_some_and(|outer| outer.sp > fp);
        if !is_frame {
            return None;
        }
        // SAFETY: words of the calling thread's stack, between this frame's stack pointer and the
        // next one's.
        let at = |below: usize| unsafe { (fp.wrapping_sub(below) as *const usize).read() };
        let method = Method::read(&mut self.readable, layout, at(METHOD_BELOW))?;
        let index = method.index_of(layout, at(INSTRUCTION_BELOW))?;
        let key = key(method.hash, index.cast_unsigned() as u64);
        if let Some(count) = self.remembered(key) {
            return Some(count);
        }
        let place = method.place(scope, &mut self.readable, layout, &mut self.texts, index)?;
        self.remember(key, &[place])
    }

    /// Adds the methods of a frame of compiled code.
    fn compiled(
        &mut self,
        scope: &mut Scope,
        layout: &'static Layout,
        blob: usize,
        native: &Frame,
    ) -> Option<usize> {
        let code = Code::read(&mut self.readable, layout, blob)?;
        let pc = code.call_of(&mut self.readable, layout, native.pc, native.sp);
        let key = key(code.key(), pc as u64);
        if let Some(count) = self.remembered(key) {
            return Some(count);
        }
        self.readable.forget();
        let mut calls = [Call { method: 0, index: 0 }; INLINED_MAX];
        let mut count = code.calls(&mut self.readable, layout, pc, &mut calls).unwrap_or(0);
        if count == 0 {
            // The code does not describe this call: its own method, without a line.
            if let Some(call) = calls.first_mut() {
                *call = Call { method: code.method, index: -1 };
            }
            count = 1;
        }
        let mut places = [0_u64; INLINED_MAX];
        for (place, call) in places.iter_mut().zip(calls.get(..count)?.iter().rev()) {
            let method = Method::read(&mut self.readable, layout, call.method)?;
            *place = method.place(scope, &mut self.readable, layout, &mut self.texts, call.index)?;
        }
        self.remember(key, places.get(..count)?)
    }

    /// Adds the functions of a frame from the cache.
    #[inline(always)]
    fn remembered(&mut self, key: u64) -> Option<usize> {
        let answer = *self.answers.get((key >> 40) as usize % ANSWERS)?;
        if answer.key != key {
            return None;
        }
        let first = answer.first as usize;
        let places = self.answered.get(first..first.wrapping_add(answer.count as usize))?;
        let room = self.places.get_mut(self.places_end..self.places_end.wrapping_add(places.len()))?;
        for (room, &place) in room.iter_mut().zip(places) {
            *room = place;
        }
        Some(places.len())
    }

    #[cold]
    fn remember(&mut self, key: u64, places: &[u64]) -> Option<usize> {
        if self.answered_end.wrapping_add(places.len()) > ANSWERED {
            self.forget_answers();
        }
        let first = self.answered_end;
        let room = self.answered.get_mut(first..first.wrapping_add(places.len()))?;
        for (room, &place) in room.iter_mut().zip(places) {
            *room = place;
        }
        self.answered_end = first.wrapping_add(places.len());
        let answer = self.answers.get_mut((key >> 40) as usize % ANSWERS)?;
        *answer = Answer { key, first: first as u32, count: places.len() as u32 };
        self.remembered(key)
    }
}

/// Returns the key of a frame in the cache.
#[inline(always)]
fn key(code: u64, at: u64) -> u64 {
    let key = inlined::mix(code, at);
    (key ^ key >> 32) | 1
}
