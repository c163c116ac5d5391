//! Finds the functions and lines that a native frame stands for, from the words at its frame
//! pointer. Results are cached.

use crate::arch::runtime_frames::v8::{CONTEXT_BELOW, FUNCTION_BELOW, INSTRUCTION_BELOW, INSTRUCTIONS_BELOW};
use crate::frames::frame::Frame;
use crate::languages::answers::{self, Answers};
use crate::languages::readable::{Readable, word};
use crate::languages::v8::function::{self, Sources};
use crate::languages::v8::heap::{Heap, is_object};
use crate::languages::v8::layout::Layout;
use crate::languages::v8::made_code::{self, MadeCode, Maker, NoCode};
use crate::languages::v8::translation::{FRAMES_MAX, FunctionFrame};
use crate::modules;
use crate::record::thread::Scope;

/// Sizes of the caches: return addresses, frames of one function, frames of several.
const STARTS: usize = 1024;
const ANSWERS: usize = 2048;
const LONG_ANSWERS: usize = 256;
/// Marks a return address that does not lie in code of V8's compilers.
const IN_NO_CODE: usize = 1;

/// Words that distinguish a frame from another one at its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Words {
    /// Start of its code, if a compiler made it; 0 if it is interpreted.
    start: usize,
    function: usize,
    shared: usize,
    name: usize,
    script: usize,
    /// The instruction, or the words that identify compiled code.
    at: [usize; 2],
}

/// Result of the search for a frame's words.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Search {
    Found(Words),
    /// The frame is not of a function that was written in JavaScript.
    Other,
    /// The frame may be of such a function, and cannot be read.
    Failed,
}

/// The functions that one frame stands for.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct LongAnswer {
    key: u64,
    count: usize,
    places: [u64; FRAMES_MAX],
}

/// The caches. All zero: empty.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Finder {
    /// Return addresses, and the starts of the code in which they lie.
    starts: [(usize, usize); STARTS],
    answers: Answers<ANSWERS>,
    long_answers: [LongAnswer; LONG_ANSWERS],
    /// Address range that was searched and contains no code of a compiler: V8's copy of its
    /// builtins.
    bare: (usize, usize),
    readable: Readable,
    sources: Sources,
}

impl Words {
    /// True if a frame of JavaScript at the same address still has these words.
    ///
    /// # Safety
    /// 1. A frame of JavaScript is on the calling thread's stack, with this frame pointer.
    #[inline(always)]
    pub(crate) unsafe fn still_stand(&self, layout: &Layout, fp: usize, pc: usize) -> bool {
        // (Each word is read where it is compared: together they need too many registers.)
        // SAFETY: (1): the words of a frame, and the objects that it holds.
        unsafe {
            let function = word(fp.wrapping_sub(FUNCTION_BELOW));
            if function != self.function {
                return false;
            }
            let shared = word(function.wrapping_sub(1).wrapping_add(layout.shared));
            if shared != self.shared
                || word(shared.wrapping_sub(1).wrapping_add(layout.name)) != self.name
                || word(shared.wrapping_sub(1).wrapping_add(layout.script)) != self.script
            {
                return false;
            }
            if self.start == 0 {
                let [instruction, _] = self.at;
                return word(fp.wrapping_sub(INSTRUCTION_BELOW)) == instruction;
            }
            made_code::still_has(layout, self.start, pc, self.at)
        }
    }

    /// Returns the key of these words in the cache.
    fn key(&self, pc: usize) -> u64 {
        let at = if self.start == 0 { 0 } else { pc };
        let [first, second] = self.at;
        answers::key([self.shared, self.name, self.script, first, second, at])
    }
}

impl Finder {
    /// Forgets all results for code, because some was unloaded or replaced.
    pub(crate) fn forget(&mut self) {
        self.starts.fill((0, 0));
        self.answers.forget();
        self.long_answers.iter_mut().for_each(|answer| answer.key = 0);
    }

    /// Returns the words to which a native frame points.
    pub(crate) fn words_of(&mut self, layout: &'static Layout, native: &Frame) -> Search {
        let fp = native.bp;
        if fp & 7 != 0 || fp.wrapping_sub(FUNCTION_BELOW) < native.sp {
            return Search::Other;
        }
        // SAFETY: a word of the calling thread's stack, between this frame's stack pointer and the
        // next one's.
        if !is_object(unsafe { word(fp.wrapping_sub(CONTEXT_BELOW)) }) {
            return Search::Other;
        }
        self.read_words(layout, native).unwrap_or(Search::Failed)
    }

    /// Reads the words of a frame with a context; `None` if any of them cannot be read.
    fn read_words(&mut self, layout: &'static Layout, native: &Frame) -> Option<Search> {
        let fp = native.bp;
        // SAFETY: as above.
        let at = |below: usize| unsafe { word(fp.wrapping_sub(below)) };
        let start = self.start_of(layout, native.pc);
        let mut heap = Heap { layout, readable: &mut self.readable };
        let function = heap.function(at(FUNCTION_BELOW))?;
        let shared = heap.member(function, layout.shared, layout.kinds.shared)?;
        let name = heap.field(shared, layout.name)?;
        let Some(script) = heap.member(shared, layout.script, layout.kinds.script) else {
            // The function is a builtin.
            return Some(Search::Other);
        };
        let at = if start == 0 {
            if fp.wrapping_sub(INSTRUCTION_BELOW) < native.sp {
                return None;
            }
            heap.of_kind(at(INSTRUCTIONS_BELOW), layout.kinds.bytecode_array)?;
            let instruction = at(INSTRUCTION_BELOW);
            made_code::interpreted_instruction(layout, instruction)?;
            [instruction, 0]
        } else {
            made_code::check_words(&mut heap, start, native.pc)?
        };
        Some(Search::Found(Words { start, function, shared, name, script, at }))
    }

    /// Returns the start of the code in which a return address lies; 0 if no compiler made the
    /// code.
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
            // The collector may be moving the code at this moment.
            Err(NoCode::Unknown) => return 0,
        };
        if let Some(entry) = self.starts.get_mut(place) {
            *entry = (pc, start);
        }
        if start == IN_NO_CODE { 0 } else { start }
    }

    /// Writes the functions that a frame stands for to `out`, the outermost first, and returns
    /// their number.
    pub(crate) fn find_places(
        &mut self,
        scope: &mut Scope,
        layout: &'static Layout,
        (native, words): (&Frame, &Words),
        out: &mut [u64],
    ) -> usize {
        let key = words.key(native.pc);
        if let Some(place) = self.answers.find(key)
            && let Some(first) = out.first_mut()
        {
            *first = place;
            return 1;
        }
        let long_answer = (key >> 20) as usize % LONG_ANSWERS;
        if let Some(known) = self.long_answers.get(long_answer).filter(|known| known.key == key) {
            for (out, &place) in out.iter_mut().zip(known.places.iter().take(known.count)) {
                *out = place;
            }
            return known.count.min(out.len());
        }
        // Memory that was mapped when the last function was read may be unmapped.
        self.readable.forget();
        let count = self.find_anew(scope, layout, (native, words), out);
        match out.get(..count) {
            Some(&[place]) => self.answers.keep(key, place),
            Some(places @ [_, _, ..]) => {
                if let Some(answer) = self.long_answers.get_mut(long_answer) {
                    (answer.key, answer.count) = (key, places.len());
                    for (out, &place) in answer.places.iter_mut().zip(places) {
                        *out = place;
                    }
                }
            }
            _ => {}
        }
        count
    }

    #[cold]
    #[inline(never)]
    fn find_anew(
        &mut self,
        scope: &mut Scope,
        layout: &'static Layout,
        (native, words): (&Frame, &Words),
        out: &mut [u64],
    ) -> usize {
        let mut heap = Heap { layout, readable: &mut self.readable };
        let sources = &mut self.sources;
        let fp = native.bp;
        // SAFETY: a word of the frame.
        let array = (fp.wrapping_sub(INSTRUCTIONS_BELOW) >= native.sp)
            .then(|| unsafe { word(fp.wrapping_sub(INSTRUCTIONS_BELOW)) });
        let array = array.and_then(|array| heap.of_kind(array, layout.kinds.bytecode_array));
        let [first_word, _] = words.at;
        let (array, instruction) = if words.start == 0 {
            (array, made_code::interpreted_instruction(layout, first_word))
        } else {
            let code = MadeCode::at_start(&mut heap, words.start);
            let maker = code.and_then(|code| code.maker(&mut heap)).unwrap_or(Maker::Other);
            let mut found = [FunctionFrame::default(); FRAMES_MAX];
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
                        if let Some(out) = out.get_mut(written).filter(|_| place != 0) {
                            *out = place;
                            written = written.wrapping_add(1);
                        }
                    }
                    return written;
                }
                (_, _, Some(_)) => {
                    let [only, ..] = found;
                    (None, Some(only.instruction))
                }
                (Some(code), Maker::Baseline, None) => {
                    let instructions = array.and_then(|array| heap.instructions(array));
                    let instruction = instructions.and_then(|instructions| {
                        code.baseline_instruction(&mut heap, instructions, native.pc)
                    });
                    (array, instruction)
                }
                _ => (None, None),
            }
        };
        let place = function::place(scope, &mut heap, sources, (words.shared, array, instruction));
        match out.first_mut() {
            Some(out) if place != 0 => {
                *out = place;
                1
            }
            _ => 0,
        }
    }
}
