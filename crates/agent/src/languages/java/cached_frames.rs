//! The cached Java frames of a thread's last stack, and the cache of code's functions.

use crate::arch::Rule;
use crate::arch::runtime_frames::java::{INSTRUCTION_BELOW, METHOD_BELOW};
use crate::frames::frame::Frame;
use crate::languages::java::inlined::{self, Call, Code, INLINED_MAX};
use crate::languages::java::method::{Method, Texts};
use crate::languages::level_cache;
use crate::languages::native_frames::NativeFrames;
use crate::languages::readable::Readable;
use crate::modules::java_code::{self, JavaCode};
use crate::modules::java_layout::Layout;
use crate::modules::rules;
use crate::record::thread::Scope;

/// Number of native frames whose methods are cached.
const ANSWERS: usize = 4096;
/// Largest number of methods of all cached frames.
const ANSWERED: usize = 1 << 15;

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
    pub(super) frames: NativeFrames<()>,
    answers: [Answer; ANSWERS],
    answered: [u64; ANSWERED],
    answered_end: usize,
    readable: Readable,
    texts: Texts,
}

impl CachedJava {
    /// Drops the cached functions, so that each is determined anew.
    pub(crate) fn forget_answers(&mut self) {
        self.answers.iter_mut().for_each(|answer| answer.key = 0);
        self.answered_end = 0;
    }

    /// Finds the Java frames of the level's cached native stack, whose node is `native`.
    #[inline(always)]
    pub(crate) fn follow(&mut self, scope: &mut Scope, layout: &'static Layout, native: u32) -> Followed {
        // SAFETY: no code here changes the cached stack.
        let natives = unsafe { level_cache::natives(scope) };
        self.frames.clear();
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
        if !is_any {
            self.frames.note_none(native);
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
        let count = match code {
            JavaCode::Interpreter => self.interpreted(scope, layout, native, outer),
            JavaCode::Compiled { blob, .. } => self.compiled(scope, layout, blob, native),
            JavaCode::Stub { .. } => Some(0),
        };
        if let Some(count) = count {
            self.frames.push(index, count, ());
        }
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
        let room = self.frames.room().get_mut(..places.len())?;
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
