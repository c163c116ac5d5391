//! Calls of a thread of Lua's own interpreter.

use crate::languages::readable::{Readable, half, word};
use crate::languages::walked::cached_frames::WalkedFrame;
use crate::languages::walked::lua::layout::{Entries, Layout};
use crate::languages::walked::lua::threads::{self, Wanted};
use crate::languages::walked::lua::{EVAL, lines, names, text};
use crate::languages::walked::{Described, END, Position, Walk, Walked};

/// A value: its contents or address, and its kind.
const VALUE_BYTES: usize = 16;
const KIND_AT: usize = 8;
const CLOSURE_BYTES: usize = 40;
const IS_NATIVE_AT: usize = 10;
/// In a call (5.1): offset of the number of tail calls that have replaced the called function.
const TAIL_CALLS_AT: usize = 36;
const PROTOTYPE_BYTES: usize = 120;
const INSTRUCTION_BYTES: usize = 4;
/// Operations by which Lua calls Lua in the same evaluating function (5.1).
const CALLS: [u32; 2] = [28, 29];

/// Returns the innermost call.
#[inline(always)]
pub(super) fn first(walk: &mut Walk, layout: &Layout) -> Option<Position> {
    walk.running = RunningInstruction::default();
    let thread = walk.threads.innermost()?;
    let call = walk.readable.word(thread.wrapping_add(layout.call))?;
    if call == 0 || call == base_of(&mut walk.readable, layout, thread)? {
        return outwards(walk, layout, thread);
    }
    walk.running.call = call;
    Some([call, thread, 0])
}

/// Returns the outermost call of a thread, which belongs to no function.
#[inline(always)]
fn base_of(readable: &mut Readable, layout: &Layout, thread: usize) -> Option<usize> {
    let place = thread.wrapping_add(layout.base_call);
    if layout.has_array { readable.word(place) } else { Some(place) }
}

/// Returns the innermost call of the threads outwards of one.
fn outwards(walk: &mut Walk, layout: &Layout, inner: usize) -> Option<Position> {
    let mut inner = inner;
    while let Some(thread) = walk.threads.outwards_of(inner) {
        let call = walk.readable.word(thread.wrapping_add(layout.call))?;
        if call != 0 && call != base_of(&mut walk.readable, layout, thread)? {
            return Some([call, thread, 0]);
        }
        inner = thread;
    }
    Some(END)
}

/// Returns the function of a call, and the call outwards.
pub(super) fn step(walk: &mut Walk, layout: &Layout, position: Position) -> Option<(Walked, Position)> {
    let [call, thread, _] = position;
    if !walk.readable.has(call, layout.call_bytes) {
        return None;
    }
    let outer = outer_of(&mut walk.readable, layout, call)?;
    let is_last = outer == 0 || outer == base_of(&mut walk.readable, layout, thread)?;
    let next = if is_last { outwards(walk, layout, thread)? } else { [outer, thread, 0] };
    let Some(prototype) = prototype_of(&mut walk.readable, layout, call) else {
        return Some((Walked::default(), next));
    };
    let mut at = walk.readable.word(call.wrapping_add(layout.instruction))?;
    if layout.saved != 0 && walk.readable.word(thread.wrapping_add(layout.call))? == call {
        at = walk.readable.word(thread.wrapping_add(layout.saved))?;
    }
    if call == walk.running.call && !layout.silent.is_empty() {
        at = running_instruction(walk, layout, prototype, at);
    }
    let readable = &mut walk.readable;
    let caller = if is_last { None } else { prototype_of(readable, layout, outer) };
    let is_entry = is_entry(readable, layout, call, (outer, caller));
    let mut walked = Walked { code: prototype, at, is_entry, is_shown: true, ..Walked::default() };
    walked.check = check(readable, layout, prototype)?;
    if let Some(caller) = caller.filter(|_| !is_tail_call(readable, layout, call)) {
        walked.more = caller;
        walked.calls = readable.word(outer.wrapping_add(layout.instruction))?;
        walked.check ^= check(readable, layout, caller)?.rotate_left(37);
    }
    Some((walked, next))
}

/// Returns a value that distinguishes a prototype from another at its address, if it can be read.
fn check(readable: &mut Readable, layout: &Layout, prototype: usize) -> Option<usize> {
    // SAFETY: readable.
    readable.has(prototype, PROTOTYPE_BYTES).then(|| unsafe { check_of(layout, prototype) })
}

/// Returns the same value for a readable prototype; see [`check`].
///
/// # Safety
/// 1. The prototype can be read.
#[inline(always)]
unsafe fn check_of(layout: &Layout, prototype: usize) -> usize {
    // SAFETY: (1).
    let field = |offset: usize| unsafe { word(prototype.wrapping_add(offset)) };
    field(layout.code) ^ field(layout.source).rotate_left(31) ^ field(layout.first_line & !7).rotate_left(47)
}

/// True if [`step`] would give the same frame. (What it takes from the call outwards is compared at
/// that call.)
///
/// # Safety
/// 1. The call was read from its position, and the thread leads there now.
#[inline(always)]
pub(super) unsafe fn is_same(walk: &mut Walk, layout: &Layout, frame: &WalkedFrame, next: Position) -> bool {
    let (walked, [call, thread, _]) = (&frame.walked, frame.position);
    // SAFETY: the caller's condition: a call holds its function, and that its prototype. Both could
    // be read when they were first seen.
    unsafe {
        let field = |offset: usize| word(call.wrapping_add(offset));
        let outer = if layout.has_array { call.wrapping_sub(layout.call_bytes) } else { field(layout.outer) };
        if next[1] == thread {
            if outer != next[0] {
                return false;
            }
        } else {
            let base = thread.wrapping_add(layout.base_call);
            let is_last = outer == 0 || outer == if layout.has_array { word(base) } else { base };
            if !is_last || outwards(walk, layout, thread) != Some(next) {
                return false;
            }
        }
        let function = field(layout.function);
        if (word(function.wrapping_add(KIND_AT)) as u8) != layout.closure_kind {
            return !walked.is_shown;
        }
        let closure = word(function);
        if layout.entries == Entries::Unmarked
            && word(closure.wrapping_add(IS_NATIVE_AT & !7)) >> 16 & 0xff != 0
        {
            return !walked.is_shown;
        }
        if !walked.is_shown || word(closure.wrapping_add(layout.prototype)) != walked.code {
            return false;
        }
        let of_thread = |offset: usize| word(thread.wrapping_add(offset));
        let is_top = layout.saved != 0 && of_thread(layout.call) == call;
        let mut at = if is_top { of_thread(layout.saved) } else { field(layout.instruction) };
        if call == walk.running.call && !layout.silent.is_empty() {
            at = running_instruction(walk, layout, walked.code, at);
        }
        if at != walked.at {
            return false;
        }
        let is_tail = match layout.entries {
            Entries::Marked(at, set, unset) => {
                let marks = half(call.wrapping_add(at & !3)) >> (at % 4 * 8) & layout.marks_mask;
                if (marks & set == set && marks & unset == 0) != walked.is_entry {
                    return false;
                }
                marks & layout.tail != 0
            }
            Entries::Unmarked => half(call.wrapping_add(TAIL_CALLS_AT)) != 0,
        };
        if is_tail && walked.calls != 0 {
            return false;
        }
        let mut now = check_of(layout, walked.code);
        if walked.more != 0 {
            now ^= check_of(layout, walked.more).rotate_left(37);
        }
        now == walked.check
    }
}

/// True if the function has replaced the called one by a tail call: then its caller is not known.
fn is_tail_call(readable: &mut Readable, layout: &Layout, call: usize) -> bool {
    match layout.entries {
        Entries::Marked(at, ..) => {
            marks(readable, layout, call, at).is_some_and(|marks| marks & layout.tail != 0)
        }
        Entries::Unmarked => readable.half(call.wrapping_add(TAIL_CALLS_AT)) != Some(0),
    }
}

fn marks(readable: &mut Readable, layout: &Layout, call: usize, at: usize) -> Option<u32> {
    Some(readable.half(call.wrapping_add(at & !3))? >> (at % 4 * 8) & layout.marks_mask)
}

fn outer_of(readable: &mut Readable, layout: &Layout, call: usize) -> Option<usize> {
    if layout.has_array {
        return Some(call.wrapping_sub(layout.call_bytes));
    }
    readable.word(call.wrapping_add(layout.outer))
}

/// Returns the prototype of the function that a call runs, if that is a function of Lua.
fn prototype_of(readable: &mut Readable, layout: &Layout, call: usize) -> Option<usize> {
    // SAFETY: each address is found readable before it is read.
    unsafe {
        if !readable.has(call, layout.call_bytes) {
            return None;
        }
        let function = word(call.wrapping_add(layout.function));
        if !readable.has(function, VALUE_BYTES) {
            return None;
        }
        let (kind, closure) = (word(function.wrapping_add(KIND_AT)) as u8, word(function));
        if kind != layout.closure_kind || !readable.has(closure, CLOSURE_BYTES) {
            return None;
        }
        let is_native = word(closure.wrapping_add(IS_NATIVE_AT & !7)) >> (IS_NATIVE_AT % 8 * 8) & 0xff != 0;
        if layout.entries == Entries::Unmarked && is_native {
            return None;
        }
        let prototype = word(closure.wrapping_add(layout.prototype));
        readable.has(prototype, PROTOTYPE_BYTES).then_some(prototype)
    }
}

/// True if an evaluating function has begun with this call.
fn is_entry(
    readable: &mut Readable,
    layout: &Layout,
    call: usize,
    (outer, caller): (usize, Option<usize>),
) -> bool {
    match layout.entries {
        Entries::Marked(at, set, unset) => {
            marks(readable, layout, call, at).is_some_and(|marks| marks & set == set && marks & unset == 0)
        }
        Entries::Unmarked => {
            // Not if the function outwards has made the call by an instruction for Lua's functions.
            if caller.is_none() {
                return true;
            }
            let at = readable.word(outer.wrapping_add(layout.instruction)).unwrap_or(0);
            let operation = readable.half(at.wrapping_sub(INSTRUCTION_BYTES)).unwrap_or(0);
            !CALLS.contains(&(operation & layout.operation_mask))
        }
    }
}

/// An event's innermost call, and the instruction that was found for it, in a function. All zero:
/// not found yet.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RunningInstruction {
    call: usize,
    prototype: usize,
    at: usize,
}

/// Returns the instruction after the running one. The running one may not have stored its position
/// in the call; then the position is on the native stack.
fn running_instruction(walk: &mut Walk, layout: &Layout, prototype: usize, saved: usize) -> usize {
    if walk.running.prototype != prototype {
        let at = find_instruction(walk, layout, prototype, saved);
        (walk.running.prototype, walk.running.at) = (prototype, at);
    }
    walk.running.at
}

/// Finds that instruction on the native stack. (Once per event, because the number of findings is
/// stored.)
fn find_instruction(walk: &mut Walk, layout: &Layout, prototype: usize, saved: usize) -> usize {
    let Some(code) = walk.readable.word(prototype.wrapping_add(layout.code)) else { return saved };
    let count = walk.readable.half(prototype.wrapping_add(layout.code_count)).unwrap_or(0) as usize;
    let end = code.saturating_add(count.saturating_mul(INSTRUCTION_BYTES));
    let is_silent = |readable: &mut Readable, word: usize| {
        let mut operation = |back: usize| {
            let at = word.wrapping_sub(back.wrapping_mul(INSTRUCTION_BYTES));
            if at < code { None } else { Some(readable.half(at)? & layout.operation_mask) }
        };
        let last = operation(1);
        let last = if last == Some(layout.argument) { operation(2) } else { last };
        last.is_some_and(|last| layout.silent.contains(&last))
    };
    let kind = walk.readable.half(saved.wrapping_sub(INSTRUCTION_BYTES)).unwrap_or(0);
    let kind = kind & layout.operation_mask;
    let wanted = Wanted { code: code.wrapping_add(1)..end.wrapping_add(1), saved, saved_kind: kind };
    threads::instruction(walk, EVAL.range(), &wanted, is_silent).unwrap_or(saved)
}

pub(super) fn describe(
    readable: &mut Readable,
    layout: &'static Layout,
    walked: &Walked,
    out: &mut Described<'_>,
) -> Option<()> {
    let prototype = walked.code;
    let source = readable.word(prototype.wrapping_add(layout.source))?;
    let first_line = readable.half(prototype.wrapping_add(layout.first_line))?;
    let code = readable.word(prototype.wrapping_add(layout.code))?;
    let name = &mut out.name;
    if walked.more == 0 || names::name(readable, layout, (walked.more, walked.calls), name).is_none() {
        name.bytes = 0;
    }
    text::describe(readable, (source.checked_add(layout.text)?, first_line), out);
    let offset = walked.at.wrapping_sub(code);
    let number = (offset / INSTRUCTION_BYTES).checked_sub(1);
    out.line = number.map_or(first_line, |number| lines::line(readable, layout, prototype, number));
    Some(())
}
