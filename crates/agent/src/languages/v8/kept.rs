//! The last frames of JavaScript of a thread's level, and the present ones at the cost of what
//! changed.
//!
//! A kept frame stands if the native path to it is the same, and what it points to: function (with
//! its name and script, as another may lie there now), instruction or code. Which native frames
//! can be JavaScript's is a matter of their code alone: none of those that unwind tables describe.

use heapr_ring::sys;

use crate::frames::frame::Frame;
use crate::languages::readable::{Readable, word};
use crate::languages::v8::function::{self, Sources};
use crate::languages::v8::heap::{Heap, is_object};
use crate::languages::v8::layout::Layout;
use crate::languages::v8::made_code::{self, MadeCode, Maker, NoCode};
use crate::languages::v8::translation::{FRAMES_MAX, FunctionFrame};
use crate::modules::{self, rules};
use crate::record::events::Records;
use crate::record::thread::Scope;
use crate::stack::cached_rule;
use crate::state::AGENT;
use crate::tree;
use crate::x86_64::Rule;

/// Native frames that stand for JavaScript's, and functions of these, in one stack.
const CAPACITY: usize = 1 << 14;
const PLACES: usize = 1 << 15;
/// Pairs of stacks, stacks without such frames, return addresses and instructions that are
/// remembered.
const PAIRS: usize = 1024;
const NONES: usize = 1024;
const STARTS: usize = 1024;
const ANSWERS: usize = 2048;
const LONG_ANSWERS: usize = 256;
/// Where a frame has, below its frame pointer: its context (or what else it is), function,
/// instructions and the present one.
const CONTEXT_AT: usize = 8;
const FUNCTION_AT: usize = 16;
const INSTRUCTIONS_AT: usize = 32;
const INSTRUCTION_AT: usize = 40;
/// A return address that lies in no code that a compiler of V8's made.
const IN_NO_CODE: usize = 1;

/// A native frame that stands for functions of JavaScript.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct V8Frame {
    /// Which one from the outer end.
    pub(crate) index: u32,
    /// Its functions among the places.
    first: u32,
    count: u32,
    /// Of the path to it.
    native_hash: u64,
    fp: usize,
    words: Words,
    /// What it gives to the stack's hash.
    part: u64,
}

/// What tells a frame from another one at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct Words {
    /// Where its code begins, if a compiler made it.
    start: usize,
    function: usize,
    shared: usize,
    name: usize,
    script: usize,
    /// The instruction, or code and what it was made with.
    at: [usize; 2],
}

/// The functions that one frame stands for.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct LongAnswer {
    key: u64,
    count: usize,
    places: [u64; FRAMES_MAX],
}

/// See the module. All zero: nothing kept.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct KeptV8 {
    depth: usize,
    hash: u64,
    epoch: u32,
    native: u32,
    /// A frame that may be one of JavaScript could not be read.
    has_failed: bool,
    frames: [V8Frame; CAPACITY],
    places: [u64; PLACES],
    pairs: [(u64, u32); PAIRS],
    nones: [u32; NONES],
    /// Return addresses, and where the code begins that they lie in.
    starts: [(usize, usize); STARTS],
    answers: [(u64, u64); ANSWERS],
    long_answers: [LongAnswer; LONG_ANSWERS],
    /// Where code was looked for, and none of a compiler's was found: V8's copy of its builtins.
    bare: (usize, usize),
    readable: Readable,
    sources: Sources,
}

impl KeptV8 {
    /// Maps one. Wiped in a forked child, whose recorder's entry knows no functions yet.
    #[cold]
    pub(crate) fn allocate() -> *mut Self {
        sys::map_anonymous(size_of::<Self>(), true).map_or(core::ptr::null_mut(), <*mut u8>::cast)
    }

    /// Where the node of a pair with this hash is remembered.
    #[inline(always)]
    pub(crate) fn pair(&mut self, hash: u64) -> &mut (u64, u32) {
        // SAFETY: inside of the array.
        unsafe { &mut *self.pairs.as_mut_ptr().wrapping_add((hash >> 40) as usize % PAIRS) }
    }

    /// Whether the native stack of a node is known to have no frames of JavaScript.
    #[inline(always)]
    pub(crate) fn has_none(&mut self, native: u32) -> bool {
        let epoch = AGENT.code_epoch.load(core::sync::atomic::Ordering::Relaxed);
        if self.epoch != epoch {
            self.epoch = epoch;
            self.nones.fill(0);
            self.starts.fill((0, 0));
            self.answers.fill((0, 0));
            self.long_answers.iter_mut().for_each(|answer| answer.key = 0);
            self.forget();
        }
        self.nones.get(native as usize % NONES).is_some_and(|&none| none == native)
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// No stack is kept any more.
    pub(crate) fn forget(&mut self) {
        (self.depth, self.hash, self.native) = (0, 0, 0);
    }

    pub(crate) fn frames(&self) -> &[V8Frame] {
        self.frames.get(..self.depth).unwrap_or_default()
    }

    /// The functions of a frame, the outermost first.
    pub(crate) fn places_of(&self, frame: &V8Frame) -> &[u64] {
        let first = frame.first as usize;
        self.places.get(first..first.wrapping_add(frame.count as usize)).unwrap_or_default()
    }

    /// How many more frames a stack has with them.
    pub(crate) fn more_frames(&self) -> usize {
        self.places_end(self.depth).saturating_sub(self.depth)
    }

    fn places_end(&self, depth: usize) -> usize {
        let last = depth.checked_sub(1).and_then(|last| self.frames.get(last));
        last.map_or(0, |frame| frame.first.wrapping_add(frame.count) as usize)
    }

    /// Makes the kept frames those of the native stack that the level keeps, whose node is
    /// `native`.
    #[inline(always)]
    pub(crate) fn follow(&mut self, scope: &mut Scope, layout: &'static Layout, native: u32) {
        let kept = &scope.level().kept;
        // SAFETY: `depth` frames are kept, and nothing here changes them.
        let natives: &[Frame] = unsafe { core::slice::from_raw_parts(kept.frames, kept.depth) };
        let mut stands = 0;
        while let Some(frame) = self.frames.get(stands).filter(|_| stands < self.depth) {
            let is_there = natives
                .get(frame.index as usize)
                .is_some_and(|native| native.hash == frame.native_hash && native.bp == frame.fp);
            // SAFETY: a frame of JavaScript on the calling thread's stack: it was one, and the same
            // code has the same frame pointer here.
            let is_same = is_there && unsafe { self.still_has(layout, frame, natives) };
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
        self.has_failed = false;
        for (index, native) in natives.iter().enumerate().skip(first) {
            let rule = match cached_rule(&scope.level().kept, native.pc) {
                Some(rule) => Some(rule),
                // Another address has its place.
                None => rules::look_up(native.pc as u64, &mut Records { scope }),
            };
            if rule != Some(Rule::FRAME_POINTER) {
                continue;
            }
            may_have = true;
            let outer = index.checked_sub(1).and_then(|outer| natives.get(outer));
            if outer.is_some_and(|outer| outer.sp == native.bp.wrapping_add(16)) {
                self.push(scope, layout, index, native);
            }
        }
        if self.has_failed {
            // The collector may be at work: the next stack is looked at anew.
            self.native = 0;
        }
        if !may_have && let Some(none) = self.nones.get_mut(native as usize % NONES) {
            *none = native;
        }
    }

    /// The kept frames from one on are gone.
    fn drop_from(&mut self, depth: usize) {
        for frame in self.frames.get(depth..self.depth).unwrap_or_default() {
            self.hash = self.hash.wrapping_sub(frame.part);
        }
        self.depth = depth;
    }

    /// Whether a kept frame, which is where it was, has all that it had.
    ///
    /// # Safety
    /// 1. It is one of JavaScript, on the calling thread's stack.
    #[inline(always)]
    unsafe fn still_has(&self, layout: &Layout, frame: &V8Frame, natives: &[Frame]) -> bool {
        let Words { start, function, shared, name, script, at } = frame.words;
        // SAFETY: (1): the words of a frame, and the objects that it holds.
        unsafe {
            if word(frame.fp.wrapping_sub(FUNCTION_AT)) != function
                || word(function.wrapping_sub(1).wrapping_add(layout.shared)) != shared
                || word(shared.wrapping_sub(1).wrapping_add(layout.name)) != name
                || word(shared.wrapping_sub(1).wrapping_add(layout.script)) != script
            {
                return false;
            }
            if start == 0 {
                let [instruction, _] = at;
                return word(frame.fp.wrapping_sub(INSTRUCTION_AT)) == instruction;
            }
        }
        let pc = natives.get(frame.index as usize).map_or(0, |native| native.pc);
        // SAFETY: (1).
        unsafe { made_code::still_has(layout, start, pc, at) }
    }

    /// Adds a native frame without unwind tables, if it is one of JavaScript whose name is found.
    #[inline(never)]
    fn push(&mut self, scope: &mut Scope, layout: &'static Layout, index: usize, native: &Frame) {
        let Some(words) = self.words_of(layout, native) else { return };
        let first = self.places_end(self.depth);
        let count = self.find_places(scope, layout, native, &words, first);
        if count == 0 || self.depth >= CAPACITY {
            return;
        }
        let end = first.wrapping_add(count);
        let mut part = 0_u64;
        for (number, &place) in self.places.get(first..end).unwrap_or_default().iter().enumerate() {
            let salt = (index as u64).wrapping_add(1) << 1;
            part = part.wrapping_add(tree::part_hash(first.wrapping_add(number), place, salt));
        }
        let Some(frame) = self.frames.get_mut(self.depth) else { return };
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
    }

    /// What a native frame points to, if it is a function's that was written in JavaScript.
    fn words_of(&mut self, layout: &'static Layout, native: &Frame) -> Option<Words> {
        let fp = native.bp;
        if fp & 7 != 0 || fp.wrapping_sub(FUNCTION_AT) < native.sp {
            return None;
        }
        // SAFETY: words of the calling thread's stack, between this frame's stack pointer and the
        // next one's.
        let at = |below: usize| unsafe { word(fp.wrapping_sub(below)) };
        if !is_object(at(CONTEXT_AT)) {
            return None;
        }
        let start = self.start_of(layout, native.pc);
        let failed_before = core::mem::replace(&mut self.has_failed, true);
        let mut heap = Heap { layout, readable: &mut self.readable };
        let function = heap.function(at(FUNCTION_AT))?;
        let shared = heap.member(function, layout.shared, layout.kinds.shared)?;
        let name = heap.field(shared, layout.name)?;
        let Some(script) = heap.member(shared, layout.script, layout.kinds.script) else {
            // A builtin.
            self.has_failed = failed_before;
            return None;
        };
        let at = if start == 0 {
            if fp.wrapping_sub(INSTRUCTION_AT) < native.sp {
                return None;
            }
            heap.of_kind(at(INSTRUCTIONS_AT), layout.kinds.bytecode_array)?;
            let instruction = at(INSTRUCTION_AT);
            made_code::interpreted_instruction(layout, instruction)?;
            [instruction, 0]
        } else {
            made_code::check_words(&mut heap, start, native.pc)?
        };
        self.has_failed = failed_before;
        Some(Words { start, function, shared, name, script, at })
    }

    /// Where the code begins that a return address lies in; 0: it is none that a compiler made.
    fn start_of(&mut self, layout: &'static Layout, pc: usize) -> usize {
        let place = (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % STARTS;
        let &(known, start) = self.starts.get(place).unwrap_or(&(0, 0));
        if known == pc {
            if start == IN_NO_CODE {
                return 0;
            }
            let mut heap = Heap { layout, readable: &mut self.readable };
            if made_code::is_at(&mut heap, start, pc) {
                return start;
            }
        }
        let (low, high) = self.bare;
        if (pc > low && pc <= high) || modules::holds(pc.wrapping_sub(1)) {
            return 0;
        }
        self.readable.forget();
        let mut heap = Heap { layout, readable: &mut self.readable };
        let start = match made_code::find(&mut heap, pc) {
            Ok(code) => code.start,
            Err(NoCode::Bare { low, high, is_large }) => {
                if is_large {
                    self.bare = (low, high);
                }
                IN_NO_CODE
            }
            // It may be that the collector is moving it.
            Err(NoCode::Unknown) => return 0,
        };
        if let Some(entry) = self.starts.get_mut(place) {
            *entry = (pc, start);
        }
        if start == IN_NO_CODE { 0 } else { start }
    }

    /// Writes the functions that a frame stands for to the places from `first` on, the outermost
    /// first; how many there are.
    fn find_places(
        &mut self,
        scope: &mut Scope,
        layout: &'static Layout,
        native: &Frame,
        words: &Words,
        first: usize,
    ) -> usize {
        let key = words.key(native.pc);
        let answer = (key >> 40) as usize % ANSWERS;
        if let Some(&(known, place)) = self.answers.get(answer)
            && known == key
            && let Some(out) = self.places.get_mut(first)
        {
            *out = place;
            return 1;
        }
        let long_answer = (key >> 20) as usize % LONG_ANSWERS;
        if let Some(known) = self.long_answers.get(long_answer).filter(|known| known.key == key) {
            for (out, &place) in self.places.iter_mut().skip(first).zip(known.places.iter().take(known.count))
            {
                *out = place;
            }
            return known.count;
        }
        // What was mapped when the last function was looked at may be gone.
        self.readable.forget();
        let mut found = [FunctionFrame::default(); FRAMES_MAX];
        let mut heap = Heap { layout, readable: &mut self.readable };
        let fp = native.bp;
        // SAFETY: a word of the frame.
        let array = (fp.wrapping_sub(INSTRUCTIONS_AT) >= native.sp)
            .then(|| unsafe { word(fp.wrapping_sub(INSTRUCTIONS_AT)) });
        let array = array.and_then(|array| heap.of_kind(array, layout.kinds.bytecode_array));
        let sources = &mut self.sources;
        let mut single = |heap: &mut Heap<'_>, places: &mut [u64], array, instruction| {
            let place = function::place(scope, heap, sources, (words.shared, array, instruction));
            match places.get_mut(first) {
                Some(out) if place != 0 => {
                    *out = place;
                    1
                }
                _ => 0,
            }
        };
        let count = if words.start == 0 {
            let [instruction, _] = words.at;
            let instruction = made_code::interpreted_instruction(layout, instruction);
            single(&mut heap, &mut self.places, array, instruction)
        } else {
            let code = MadeCode::at_start(&mut heap, words.start);
            let maker = code.and_then(|code| code.maker(&mut heap)).unwrap_or(Maker::Other);
            let optimized = matches!(maker, Maker::Maglev | Maker::Turbofan)
                .then(|| code?.optimized_frames(&mut heap, native.pc, maker, &mut found))
                .flatten();
            match (code, maker, optimized) {
                (_, _, Some((count, literals))) if count > 1 => {
                    let mut written = 0;
                    for frame in found.iter().take(count) {
                        let Some(shared) = heap.element(literals, frame.function) else { continue };
                        let Some(shared) = heap.of_kind(shared, layout.kinds.shared) else { continue };
                        let what = (shared, None, Some(frame.instruction));
                        let place = function::place(scope, &mut heap, sources, what);
                        let out = self.places.get_mut(first.wrapping_add(written));
                        if let Some(out) = out.filter(|_| place != 0) {
                            *out = place;
                            written = written.wrapping_add(1);
                        }
                    }
                    let places = self.places.get(first..first.wrapping_add(written)).unwrap_or_default();
                    if let Some(answer) = self.long_answers.get_mut(long_answer) {
                        (answer.key, answer.count) = (key, places.len());
                        for (out, &place) in answer.places.iter_mut().zip(places) {
                            *out = place;
                        }
                    }
                    return places.len();
                }
                (_, _, Some(_)) => {
                    let [only, ..] = found;
                    single(&mut heap, &mut self.places, None, Some(only.instruction))
                }
                (Some(code), Maker::Baseline, None) => {
                    let instructions = array.and_then(|array| heap.instructions(array));
                    let instruction = instructions.and_then(|instructions| {
                        code.baseline_instruction(&mut heap, instructions, native.pc)
                    });
                    single(&mut heap, &mut self.places, array, instruction)
                }
                _ => single(&mut heap, &mut self.places, None, None),
            }
        };
        if count == 1
            && let (Some(entry), Some(&place)) = (self.answers.get_mut(answer), self.places.get(first))
        {
            *entry = (key, place);
        }
        count
    }
}

impl Words {
    /// By what the answer to them is remembered.
    fn key(&self, pc: usize) -> u64 {
        let mix = |hash: u64, value: usize| {
            (hash ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        };
        let at = if self.start == 0 { 0 } else { pc };
        let [first, second] = self.at;
        let all = [self.shared, self.name, self.script, first, second, at];
        let hash = all.into_iter().fold(0xd6e8_feb8_6659_fd93, mix);
        (hash ^ hash >> 31).wrapping_mul(0xff51_afd7_ed55_8ccd) | 1
    }
}
