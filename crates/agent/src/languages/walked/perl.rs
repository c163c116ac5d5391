//! Perl: the contexts of the interpreter that the thread runs, which a thread-specific value names.

use core::sync::atomic::Ordering::*;

use heapr_wire::LANGUAGE_PERL;

use crate::languages::readable::{Readable, half, word};
use crate::languages::unknown;
use heapr_known::glibc::{INLINE_KEYS, KEY_ENTRY_BYTES, KEY_VALUE_AT, KEY_VALUES_OFFSET};

use crate::arch::thread_pointer;
use crate::languages::walked::cached_frames::WalkedFrame;
use crate::languages::walked::{Described, Dialect, END, Position, Walk, Walked};
use crate::modules::interpreters::PERL as EXPORTS;

/// Versions with known offsets, with threads. They are from the headers, and equal in all versions.
pub(crate) const VERSIONS: [u32; 4] = [0x0524, 0x0526, 0x0528, 0x052a];
/// Offsets in `struct interpreter`.
const STATEMENT_AT: usize = 208;
const STACKS_AT: usize = 224;
/// `PERL_SI`: its contexts, the next stack outwards, the index of the innermost context.
const CONTEXTS_AT: usize = 8;
const OUTER_AT: usize = 16;
const INNERMOST_AT: usize = 32;
const CONTEXTS_MAX: i32 = 1 << 20;
/// `PERL_CONTEXT`: its kind and the statement outwards; of a call also the return address (0: out
/// of the evaluating function), and the subroutine.
const CONTEXT_BYTES: usize = 104;
const CONTEXT_KIND: usize = 15;
const CALL: usize = 9;
const FORMAT: usize = 10;
const EVALUATION: usize = 11;
const OUTER_STATEMENT_AT: usize = 16;
const RETURN_AT: usize = 64;
const SUBROUTINE_AT: usize = 72;
/// Offsets in `COP`.
const LINE_AT: usize = 36;
const FILE_AT: usize = 48;
/// `SV`: its body. `XPVCV`: package, symbol or name, flags.
const PACKAGE_AT: usize = 32;
const SYMBOL_AT: usize = 56;
const FLAGS_AT: usize = 92;
const IS_NAMED: u32 = 0x8000;
/// `XPVGV`: name and package.
const SYMBOL_NAME_AT: usize = 32;
const SYMBOL_PACKAGE_AT: usize = 40;
/// The body of a hash with a name, after its own fields: the name, or a list of names; their
/// number.
const PACKAGE_NAME_AT: usize = 32;
const PACKAGE_NAMES_AT: usize = 60;
/// `HEK`: number of bytes, and the first byte.
const NAME_BYTES_AT: usize = 4;
const NAME_AT: usize = 8;
const NAME_BYTES_MAX: usize = 1024;
const STACKS_MAX: usize = 1 << 12;
/// Values in place of a subroutine: an evaluated string, and the program itself.
const STRING: usize = 1;
const PROGRAM: usize = 2;
/// Value in place of a stack for the program itself.
const NO_STACK: usize = 1;
/// Mark of a frame that could not be read completely, and is read each time.
const NOT_WHOLE: usize = 0x100;

pub(super) struct Perl;

impl Dialect for Perl {
    const NUMBER: u8 = LANGUAGE_PERL;

    fn evaluates() -> (usize, usize) {
        (EXPORTS.eval.load(Relaxed), EXPORTS.eval_end.load(Relaxed))
    }

    fn look() -> bool {
        let key = EXPORTS.key.load(Acquire);
        if key == 0 || EXPORTS.is_seen.swap(1, Relaxed) != 0 {
            return false;
        }
        let number = |at: usize| {
            // SAFETY: numbers of one byte, which the module exports.
            if at == 0 { 0 } else { u32::from(unsafe { (at as *const u8).read() }) }
        };
        let version = number(EXPORTS.revision.load(Relaxed)) << 8 | number(EXPORTS.version.load(Relaxed));
        let is_known = VERSIONS.contains(&version);
        if !is_known {
            unknown::note(LANGUAGE_PERL, version);
        }
        is_known
    }

    #[inline(always)]
    fn first(walk: &mut Walk) -> Option<Position> {
        let readable = &mut walk.readable;
        let interpreter = interpreter()?;
        if !readable.has(interpreter, STACKS_AT.wrapping_add(8)) {
            return None;
        }
        // SAFETY: readable.
        let field = |offset: usize| unsafe { word(interpreter.wrapping_add(offset)) };
        let (statement, stack) = (field(STATEMENT_AT), field(STACKS_AT));
        let count = context_count(readable, stack)?;
        if count == 0 { outwards(readable, stack, statement) } else { Some([stack, count, statement]) }
    }

    /// (One frame for each context of any kind: most are loops and blocks, which are not shown.)
    fn step(walk: &mut Walk, [stack, number, statement]: Position) -> Option<(Walked, Position)> {
        let readable = &mut walk.readable;
        if stack == NO_STACK {
            // The program itself.
            return Some((of_statement(readable, PROGRAM, statement, true), END));
        }
        let inner = number.checked_sub(1)?;
        let contexts = readable.word(stack.wrapping_add(CONTEXTS_AT))?;
        let context = contexts.wrapping_add(inner.wrapping_mul(CONTEXT_BYTES));
        if !readable.has(context, CONTEXT_BYTES) {
            return None;
        }
        // SAFETY: inside the readable range.
        let field = |offset: usize| unsafe { word(context.wrapping_add(offset)) };
        let kind = field(0) & CONTEXT_KIND;
        let (mut walked, mut outer_statement) = (Walked { more: kind, ..Walked::default() }, statement);
        if is_call(kind) {
            let subroutine = if kind == EVALUATION { STRING } else { field(SUBROUTINE_AT) };
            let is_entry = kind == CALL && field(RETURN_AT) == 0;
            walked = of_statement(readable, subroutine, statement, is_entry);
            walked.more |= kind;
            outer_statement = field(OUTER_STATEMENT_AT);
        }
        let next = match inner {
            0 => outwards(readable, stack, outer_statement)?,
            _ => [stack, inner, outer_statement],
        };
        Some((walked, next))
    }

    #[inline(always)]
    unsafe fn is_same(_: &mut Walk, frame: &WalkedFrame, next: Position) -> bool {
        let (walked, [stack, number, statement]) = (&frame.walked, frame.position);
        // SAFETY: the caller's condition: the interpreter has this stack of contexts. Each context
        // holds its subroutine and statement, which could be read when they were first seen.
        unsafe {
            if stack == NO_STACK {
                return is_same_statement(walked, statement);
            }
            let inner = number.wrapping_sub(1);
            if inner == 0 {
                // The next frame outwards lies in another stack.
                let outer = word(stack.wrapping_add(OUTER_AT));
                let is_next = if outer == 0 {
                    next[0] == NO_STACK
                } else {
                    outer == next[0] && innermost_of(outer) == (next[1] as i32).wrapping_sub(1)
                };
                if !is_next {
                    return false;
                }
            }
            let contexts = word(stack.wrapping_add(CONTEXTS_AT));
            let context = contexts.wrapping_add(inner.wrapping_mul(CONTEXT_BYTES));
            let field = |offset: usize| word(context.wrapping_add(offset));
            if field(0) & CONTEXT_KIND != walked.more {
                return false;
            }
            if !is_call(walked.more) {
                return next[2] == statement;
            }
            let (is_evaluation, is_called) = (walked.more == EVALUATION, walked.more == CALL);
            (is_evaluation || field(SUBROUTINE_AT) == walked.code)
                && (is_called && field(RETURN_AT) == 0) == walked.is_entry
                && field(OUTER_STATEMENT_AT) == next[2]
                && is_same_statement(walked, statement)
        }
    }

    fn describe(readable: &mut Readable, walked: &Walked, out: &mut Described<'_>) -> Option<()> {
        describe(readable, walked, out)
    }
}

#[inline(always)]
fn is_call(kind: usize) -> bool {
    matches!(kind, CALL | FORMAT | EVALUATION)
}

/// Returns the number of contexts of a stack.
fn context_count(readable: &mut Readable, stack: usize) -> Option<usize> {
    let innermost = readable.word(stack.wrapping_add(INNERMOST_AT))? as u32 as i32;
    (innermost <= CONTEXTS_MAX).then(|| usize::try_from(innermost.wrapping_add(1)).unwrap_or(0))
}

/// Returns the index of a stack's innermost context; -1 if it is empty.
///
/// # Safety
/// 1. `stack` is a stack of the interpreter.
#[inline(always)]
unsafe fn innermost_of(stack: usize) -> i32 {
    // SAFETY: (1).
    (unsafe { half(stack.wrapping_add(INNERMOST_AT)) }).cast_signed()
}

/// Returns the innermost context outwards of a stack; in the end the program itself.
fn outwards(readable: &mut Readable, stack: usize, statement: usize) -> Option<Position> {
    let mut stack = stack;
    for _ in 0..STACKS_MAX {
        stack = readable.word(stack.wrapping_add(OUTER_AT))?;
        if stack == 0 {
            return Some([NO_STACK, 0, statement]);
        }
        let count = context_count(readable, stack)?;
        if count != 0 {
            return Some([stack, count, statement]);
        }
    }
    None
}

/// Returns the interpreter that the calling thread runs.
fn interpreter() -> Option<usize> {
    // SAFETY: a variable that the module exports.
    let key = unsafe { half(EXPORTS.key.load(Relaxed)) };
    if key >= INLINE_KEYS {
        return None;
    }
    let entry = KEY_VALUES_OFFSET.wrapping_add((key as usize).wrapping_mul(KEY_ENTRY_BYTES));
    let at = entry.wrapping_add(KEY_VALUE_AT);
    // SAFETY: inside the thread's descriptor.
    let interpreter = unsafe { word(thread_pointer::thread_pointer().wrapping_add(at)) };
    (interpreter != 0).then_some(interpreter)
}

fn of_statement(readable: &mut Readable, subroutine: usize, statement: usize, is_entry: bool) -> Walked {
    let is_statement = readable.has(statement, FILE_AT.wrapping_add(8));
    let is_subroutine = subroutine <= PROGRAM || readable.has(subroutine, 8);
    let is_whole = is_statement && is_subroutine;
    // SAFETY: both can be read.
    let check = if is_whole { unsafe { check_of(statement, subroutine) } } else { 0 };
    Walked {
        code: subroutine,
        check,
        at: statement,
        more: if is_whole { 0 } else { NOT_WHOLE },
        is_entry,
        is_shown: true,
        ..Walked::default()
    }
}

/// Returns a value that distinguishes a statement, and its subroutine, from others at their
/// addresses.
///
/// # Safety
/// 1. The statement can be read, and the subroutine if it is an address.
#[inline(always)]
unsafe fn check_of(statement: usize, subroutine: usize) -> usize {
    // SAFETY: (1).
    unsafe {
        let (file, line) = (word(statement.wrapping_add(FILE_AT)), half(statement.wrapping_add(LINE_AT)));
        let body = if subroutine > PROGRAM { word(subroutine) } else { 0 };
        file ^ (line as usize).rotate_left(47) ^ body.rotate_left(19)
    }
}

/// True if a statement, and its subroutine, are unchanged.
///
/// # Safety
/// 1. The statement and the subroutine are the ones that were read, and are held.
#[inline(always)]
unsafe fn is_same_statement(walked: &Walked, statement: usize) -> bool {
    if statement != walked.at || walked.more & NOT_WHOLE != 0 {
        return false;
    }
    // SAFETY: (1).
    unsafe { check_of(statement, walked.code) == walked.check }
}

fn describe(readable: &mut Readable, walked: &Walked, out: &mut Described<'_>) -> Option<()> {
    match walked.code {
        STRING => out.name.push_all("(eval)"),
        PROGRAM => out.name.push_all("(main)"),
        subroutine => {
            let body = readable.word(subroutine)?;
            let flags = (readable.word(body.wrapping_add(FLAGS_AT & !7))? >> 32) as u32;
            let symbol = readable.word(body.wrapping_add(SYMBOL_AT))?;
            let (package, name) = if flags & IS_NAMED != 0 {
                (readable.word(body.wrapping_add(PACKAGE_AT))?, symbol)
            } else {
                let symbol = readable.word(symbol)?;
                (
                    readable.word(symbol.wrapping_add(SYMBOL_PACKAGE_AT))?,
                    readable.word(symbol.wrapping_add(SYMBOL_NAME_AT))?,
                )
            };
            if let Some(package) = package_name(readable, package) {
                out.name.push_bytes(package);
                out.name.push_all("::");
            }
            out.name.push_bytes(name_of(readable, name)?);
        }
    }
    out.line = (readable.word(walked.at.wrapping_add(LINE_AT & !7))? >> 32) as u32;
    let file = readable.word(walked.at.wrapping_add(FILE_AT))?;
    let mut bytes = 0_usize;
    while bytes < NAME_BYTES_MAX {
        match readable.bytes(file.wrapping_add(bytes), 1)? {
            [0] => break,
            byte => out.file.push_bytes(byte),
        }
        bytes = bytes.wrapping_add(1);
    }
    Some(())
}

fn package_name(readable: &mut Readable, package: usize) -> Option<&'static [u8]> {
    let body = readable.word(package)?;
    let mut name = readable.word(body.wrapping_add(PACKAGE_NAME_AT))?;
    if readable.word(body.wrapping_add(PACKAGE_NAMES_AT & !7))? >> 32 != 0 {
        name = readable.word(name)?;
    }
    name_of(readable, name)
}

fn name_of(readable: &mut Readable, name: usize) -> Option<&'static [u8]> {
    let bytes = (readable.bytes(name.checked_add(NAME_BYTES_AT)?, 4)?).try_into().ok()?;
    let bytes = u32::from_le_bytes(bytes) as usize;
    (bytes <= NAME_BYTES_MAX).then(|| readable.bytes(name.wrapping_add(NAME_AT), bytes))?
}
