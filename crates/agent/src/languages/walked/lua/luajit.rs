//! Calls of a thread of LuaJIT (2.1 with addresses of 64 bits). They are frames on its
//! own stack, each with a link to the one outwards.
//!
//! ```text
//! function | link   values …
//!            ^ the lowest bits are its kind: a return address in bytecode, or a distance
//! ```
//! While compiled code runs, the stack of Lua is as it was where that code began. The function
//! there is shown without a line, as one that it calls may run in its place.

use crate::arch::runtime_frames::luajit::{SAVED_AT, THREAD_AT};
use crate::languages::readable::Readable;
use crate::languages::walked::lua::text;
use crate::languages::walked::lua::threads::{Main, Running, Shape};
use crate::languages::walked::{Described, END, Position, Walk, Walked};

/// `lua_State`; the main thread lies before the shared state. The frame of the interpreter on the
/// native stack names the thread, too.
pub(super) const THREAD: Shape = Shape {
    bytes: 96,
    kind: (9, 6),
    global: 16,
    main: Main::Before(96),
    anchor: 80,
    names_itself: THREAD_AT,
};
const BASE_AT: usize = 32;
const STACK_AT: usize = 56;
/// `GCfunc`: kind of object, kind of function (0: Lua's), first instruction, which lies after its
/// prototype.
const FUNCTION_KIND: u8 = 8;
const CODE_AT: usize = 32;
const FUNCTION_BYTES: usize = 40;
const ADDRESS: usize = (1 << 47) - 1;
/// Size of `GCproto`.
const PROTOTYPE_BYTES: usize = 104;
const PROTOTYPE_KIND: u8 = 7;
const CODE_COUNT_AT: usize = 12;
const FILE_AT: usize = 64;
const FIRST_LINE_AT: usize = 72;
const LINE_COUNT_AT: usize = 76;
const LINES_AT: usize = 80;
const TEXT_AT: usize = 24;
const INSTRUCTION_BYTES: usize = 4;
/// Kinds of links.
const KIND: usize = 7;
const RETURN: usize = 3;
const NATIVE: usize = 1;
const CONTINUED: usize = 2;
const VARIABLE: usize = 3;
/// Number of words of the shared state that are searched for the main thread, and from there for
/// the running one.
const SHARED_WORDS: usize = 128;
/// Value for an instruction that is not known.
const NO_INSTRUCTION: usize = 0;

/// Returns the position of the innermost frame of the threads outwards of `inner`; `None`: of the
/// innermost thread. A position is a frame, the instruction after the running one, and the thread.
pub(super) fn first(walk: &mut Walk, inner: Option<usize>) -> Option<Position> {
    let mut inner = inner;
    loop {
        let running = match inner {
            None => walk.threads.first(),
            Some(inner) => walk.threads.running_outwards_of(inner),
        };
        let Some(Running { thread, anchor }) = running else { return Some(END) };
        let readable = &mut walk.readable;
        let compiled = compiled_base(readable, thread);
        let base = compiled.map_or_else(|| readable.word(thread.wrapping_add(BASE_AT)), Some)?;
        let at = match compiled {
            Some(_) => NO_INSTRUCTION,
            None => readable.word(anchor.wrapping_add(SAVED_AT))?,
        };
        let frame = base.wrapping_sub(8);
        if frame > bottom_of(readable, thread)? {
            return Some([frame, at, thread]);
        }
        inner = Some(thread);
    }
}

fn bottom_of(readable: &mut Readable, thread: usize) -> Option<usize> {
    Some(readable.word(thread.wrapping_add(STACK_AT))?.wrapping_add(8))
}

pub(super) fn step(walk: &mut Walk, [frame, at, thread]: Position) -> Option<(Walked, Position)> {
    let readable = &mut walk.readable;
    let link = readable.word(frame)?;
    let function = readable.word(frame.wrapping_sub(8))? & ADDRESS;
    let (mut own, mut own_link) = (frame, link);
    if link & KIND == VARIABLE {
        // The function's own frame lies outwards, with the same function.
        own = frame.checked_sub(link & !KIND).filter(|&own| own < frame)?;
        own_link = readable.word(own)?;
    }
    let is_entry = link & KIND != VARIABLE && link & RETURN == NATIVE;
    let (outer, outer_at) = outwards(readable, own, own_link)?;
    let mut walked = Walked::default();
    if let Some(prototype) = prototype_of(readable, function) {
        walked = Walked { code: prototype, at, is_entry, is_shown: true, ..walked };
        walked.check = check(readable, prototype)?;
    }
    let next = if outer > bottom_of(readable, thread)? {
        [outer, outer_at, thread]
    } else {
        first(walk, Some(thread))?
    };
    Some((walked, next))
}

/// Returns the frame outwards, and the instruction after the one that runs there.
fn outwards(readable: &mut Readable, frame: usize, link: usize) -> Option<(usize, usize)> {
    if link & RETURN == 0 {
        let call = readable.half(link.checked_sub(INSTRUCTION_BYTES)?)?;
        let slots = (call >> 8 & 0xff) as usize;
        return Some((frame.checked_sub(slots.wrapping_add(2).wrapping_mul(8))?, link));
    }
    let is_continued = link & KIND == CONTINUED;
    let at = if is_continued { readable.word(frame.checked_sub(16)?)? } else { NO_INSTRUCTION };
    Some((frame.checked_sub(link & !KIND).filter(|&outer| outer < frame)?, at))
}

/// Returns the start of the values of the function in which compiled code has begun, if such code
/// runs.
fn compiled_base(readable: &mut Readable, thread: usize) -> Option<usize> {
    let global = readable.word(thread.wrapping_add(THREAD.global))?;
    let Main::Before(bytes) = THREAD.main else { return None };
    let main = global.checked_sub(bytes)?;
    let mut word = |number: usize| readable.word(global.wrapping_add(number.wrapping_mul(8)));
    // The half word before it is the number of the running code, or (negative) the state of the
    // machine. (Lists of the collector may begin with the thread, too, but after an address or 0.)
    let first = (1..SHARED_WORDS).find(|&number| {
        let state = word(number.wrapping_sub(1)).unwrap_or(0);
        word(number) == Some(main) && state != 0 && state >> 32 == 0
    })?;
    if (word(first.wrapping_sub(1))? as u32).cast_signed() < 0 {
        return None;
    }
    let running = (first.wrapping_add(1)..first.wrapping_add(SHARED_WORDS))
        .find(|&number| word(number) == Some(thread))?;
    word(running.wrapping_add(1)).filter(|&base| base != 0)
}

fn prototype_of(readable: &mut Readable, function: usize) -> Option<usize> {
    if !readable.has(function, FUNCTION_BYTES) {
        return None;
    }
    let [kind, of_function] = *readable.bytes(function.wrapping_add(9), 2)? else { return None };
    if kind != FUNCTION_KIND || of_function != 0 {
        return None;
    }
    let prototype = readable.word(function.wrapping_add(CODE_AT))?.checked_sub(PROTOTYPE_BYTES)?;
    let is_one = readable.has(prototype, PROTOTYPE_BYTES)
        && readable.bytes(prototype.wrapping_add(9), 1)? == [PROTOTYPE_KIND];
    is_one.then_some(prototype)
}

fn check(readable: &mut Readable, prototype: usize) -> Option<usize> {
    let mut field = |offset: usize| readable.word(prototype.wrapping_add(offset));
    Some(field(LINES_AT)? ^ field(FILE_AT)?.rotate_left(31) ^ field(FIRST_LINE_AT)?.rotate_left(17))
}

pub(super) fn describe(readable: &mut Readable, walked: &Walked, out: &mut Described<'_>) -> Option<()> {
    let prototype = walked.code;
    let file = readable.word(prototype.wrapping_add(FILE_AT))?;
    let first_line = readable.half(prototype.wrapping_add(FIRST_LINE_AT))?;
    text::describe(readable, (file.checked_add(TEXT_AT)?, first_line), out);
    let code = prototype.wrapping_add(PROTOTYPE_BYTES);
    out.line = line(readable, prototype, walked.at.wrapping_sub(code) / INSTRUCTION_BYTES).unwrap_or(0);
    Some(())
}

/// Returns the line of the instruction before the one with an index.
fn line(readable: &mut Readable, prototype: usize, number: usize) -> Option<u32> {
    let mut half = |offset: usize| readable.half(prototype.wrapping_add(offset));
    let (first, count) = (half(FIRST_LINE_AT)?, half(LINE_COUNT_AT)?);
    let number = number.checked_sub(1)?;
    if number >= half(CODE_COUNT_AT)? as usize {
        return None;
    }
    let lines = readable.word(prototype.wrapping_add(LINES_AT)).filter(|&lines| lines != 0)?;
    let Some(entry) = number.checked_sub(1) else { return Some(first) };
    let bytes = match count {
        0..256 => 1,
        256..65536 => 2,
        _ => 4,
    };
    let entry = readable.bytes(lines.checked_add(entry.checked_mul(bytes)?)?, bytes)?;
    Some(first.wrapping_add(entry.iter().rev().fold(0, |line, &byte| line << 8 | u32::from(byte))))
}
