//! Calls of a thread of Lua's own interpreter.

use crate::languages::readable::Readable;
use crate::languages::walked::lua::layout::{Entries, Layout};
use crate::languages::walked::lua::threads::Running;
use crate::languages::walked::lua::{evaluates, lines, text, threads};
use crate::languages::walked::{Described, Walk, Walked};

const FRAMES_MAX: usize = 1 << 18;
/// A value: what it is or where, and its kind.
const VALUE_BYTES: usize = 16;
const KIND_AT: usize = 8;
const CLOSURE_BYTES: usize = 40;
const IS_NATIVE_AT: usize = 10;
const PROTOTYPE_BYTES: usize = 120;
const INSTRUCTION_BYTES: usize = 4;
/// Calls of Lua by Lua in the same evaluating function (5.1).
const CALLS: [u32; 2] = [28, 29];

/// Calls back with the functions of Lua that a thread runs. `true`: those of the one that has
/// resumed it come next.
pub(super) fn walk(
    walk: &mut Walk<'_>,
    layout: &Layout,
    (running, is_innermost): (Running, bool),
    out: &mut dyn FnMut(Walked) -> bool,
) -> Option<bool> {
    let thread = running.thread;
    let innermost = walk.readable.word(thread.wrapping_add(layout.call))?;
    let base = if layout.has_array {
        walk.readable.word(thread.wrapping_add(layout.base_call))?
    } else {
        thread.wrapping_add(layout.base_call)
    };
    let mut call = innermost;
    for _ in 0..FRAMES_MAX {
        if call == base || call == 0 {
            break;
        }
        if !walk.readable.has(call, layout.call_bytes) {
            return None;
        }
        let outer = outer_of(walk.readable, layout, call)?;
        if let Some(prototype) = prototype_of(walk.readable, layout, call) {
            let mut at = walk.readable.word(call.wrapping_add(layout.instruction))?;
            if call == innermost && layout.saved != 0 {
                at = walk.readable.word(thread.wrapping_add(layout.saved))?;
            }
            if call == innermost && is_innermost && !layout.silent.is_empty() {
                at = running_instruction(walk, layout, (prototype, running.anchor), at);
            }
            let is_entry = is_entry(walk.readable, layout, (call, outer, base));
            let mut field = |offset: usize| walk.readable.word(prototype.wrapping_add(offset));
            let check = field(layout.code)?
                ^ field(layout.lines)?.rotate_left(17)
                ^ field(layout.source)?.rotate_left(31)
                ^ field(layout.first_line & !7)?.rotate_left(47);
            if !out(Walked { code: prototype, check, at, is_entry }) {
                return None;
            }
        }
        call = outer;
    }
    Some(true)
}

fn outer_of(readable: &mut Readable, layout: &Layout, call: usize) -> Option<usize> {
    if layout.has_array {
        return Some(call.wrapping_sub(layout.call_bytes));
    }
    readable.word(call.wrapping_add(layout.outer))
}

/// The prototype of the function that a call runs, if that is one of Lua.
fn prototype_of(readable: &mut Readable, layout: &Layout, call: usize) -> Option<usize> {
    let function = readable.word(call.wrapping_add(layout.function))?;
    if !readable.has(function, VALUE_BYTES) {
        return None;
    }
    let kind = *readable.bytes(function.wrapping_add(KIND_AT), 1)?.first()?;
    let closure = readable.word(function)?;
    if kind != layout.closure_kind || !readable.has(closure, CLOSURE_BYTES) {
        return None;
    }
    if layout.entries == Entries::Unmarked && readable.bytes(closure.wrapping_add(IS_NATIVE_AT), 1)? != [0] {
        return None;
    }
    let prototype = readable.word(closure.wrapping_add(layout.prototype))?;
    readable.has(prototype, PROTOTYPE_BYTES).then_some(prototype)
}

/// Whether an evaluating function has begun with this call.
fn is_entry(readable: &mut Readable, layout: &Layout, (call, outer, base): (usize, usize, usize)) -> bool {
    match layout.entries {
        Entries::Marked(at, set, unset) => readable
            .bytes(call.wrapping_add(at), 2)
            .and_then(|bytes| bytes.try_into().ok())
            .map(|bytes| u32::from(u16::from_le_bytes(bytes)))
            .is_some_and(|marks| marks & set == set && marks & unset == 0),
        Entries::Unmarked => {
            // Not where the function outwards has called it by an instruction for that.
            if outer == base || prototype_of(readable, layout, outer).is_none() {
                return true;
            }
            let at = readable.word(outer.wrapping_add(layout.instruction)).unwrap_or(0);
            let operation = readable.half(at.wrapping_sub(INSTRUCTION_BYTES)).unwrap_or(0);
            !CALLS.contains(&(operation & layout.operation_mask))
        }
    }
}

/// The instruction behind the one that is running, where that may not have put it away: it is at
/// hand on the native stack then.
fn running_instruction(
    walk: &mut Walk<'_>,
    layout: &Layout,
    (prototype, anchor): (usize, usize),
    saved: usize,
) -> usize {
    let Some(code) = walk.readable.word(prototype.wrapping_add(layout.code)) else { return saved };
    let count = walk.readable.half(prototype.wrapping_add(layout.code_count)).unwrap_or(0) as usize;
    let end = code.saturating_add(count.saturating_mul(INSTRUCTION_BYTES));
    let mut is_silent = |readable: &mut Readable, word: usize| {
        if word <= code || word > end || word & 3 != 0 {
            return false;
        }
        let mut operation = |back: usize| {
            let at = word.wrapping_sub(back.wrapping_mul(INSTRUCTION_BYTES));
            if at < code { None } else { Some(readable.half(at)? & layout.operation_mask) }
        };
        let last = operation(1);
        let last = if last == Some(layout.argument) { operation(2) } else { last };
        last.is_some_and(|last| layout.silent.contains(&last))
    };
    let (eval, eval_end) = evaluates();
    let limit = call_of(walk, (eval, eval_end), anchor);
    let kind = walk.readable.half(saved.wrapping_sub(INSTRUCTION_BYTES)).unwrap_or(0);
    let kind = kind & layout.operation_mask;
    threads::instruction(walk, limit, (saved, kind), &mut is_silent).unwrap_or(saved)
}

/// Where the innermost call in a function stands on the native stack.
fn call_of(walk: &mut Walk<'_>, (low, high): (usize, usize), anchor: usize) -> usize {
    let mut at = walk.start.sp;
    if walk.start.pc > low && walk.start.pc <= high {
        return at;
    }
    while at < anchor {
        match walk.readable.word(at) {
            Some(word) if word > low && word <= high => return at,
            Some(_) => at = at.wrapping_add(8),
            None => break,
        }
    }
    anchor
}

pub(super) fn describe(
    readable: &mut Readable,
    layout: &Layout,
    walked: &Walked,
    out: &mut Described<'_>,
) -> Option<()> {
    let prototype = walked.code;
    let source = readable.word(prototype.wrapping_add(layout.source))?;
    let first_line = readable.half(prototype.wrapping_add(layout.first_line))?;
    let code = readable.word(prototype.wrapping_add(layout.code))?;
    text::describe(readable, (source.checked_add(layout.text)?, first_line), out);
    let offset = walked.at.wrapping_sub(code);
    let number = (offset / INSTRUCTION_BYTES).checked_sub(1);
    out.line = number.map_or(first_line, |number| lines::line(readable, layout, prototype, number));
    Some(())
}
