//! Perl: the contexts of the interpreter that the thread runs, which a thread-specific value names.

use core::sync::atomic::Ordering::*;

use heapr_wire::LANGUAGE_PERL;

use crate::languages::readable::{Readable, half};
use crate::languages::unknown;
use crate::languages::walked::{Described, Dialect, Walk, Walked};
use crate::modules::interpreters::PERL as EXPORTS;
use crate::x86_64::thread_pointer;

/// The versions of which the offsets are known, with threads: by their headers, in which all that
/// is read is the same.
const VERSIONS: [u32; 4] = [0x0524, 0x0526, 0x0528, 0x052a];
/// Where the C library keeps the values of a thread's first keys (`specific_1stblock`; 2.31 to
/// 2.43): 16 bytes each, the value in the second half.
const VALUES_AT: usize = 0x310;
const INLINE_KEYS: u32 = 32;
/// `struct interpreter`.
const STATEMENT_AT: usize = 208;
const STACKS_AT: usize = 224;
/// `PERL_SI`: its contexts, the one outwards, the number of the innermost context.
const CONTEXTS_AT: usize = 8;
const OUTER_AT: usize = 16;
const INNERMOST_AT: usize = 32;
const CONTEXTS_MAX: i32 = 1 << 20;
/// `PERL_CONTEXT`: what it is; the statement outwards; of a call: where it returns to (0: out of
/// the evaluating function), and the subroutine.
const CONTEXT_BYTES: usize = 104;
const CONTEXT_KIND: usize = 15;
const CALL: usize = 9;
const FORMAT: usize = 10;
const EVALUATION: usize = 11;
const OUTER_STATEMENT_AT: usize = 16;
const RETURN_AT: usize = 64;
const SUBROUTINE_AT: usize = 72;
/// `COP`.
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
/// The body of a hash with a name, behind its own: the name, or several; how many.
const PACKAGE_NAME_AT: usize = 32;
const PACKAGE_NAMES_AT: usize = 60;
/// `HEK`: bytes, and the first.
const NAME_BYTES_AT: usize = 4;
const NAME_AT: usize = 8;
const NAME_BYTES_MAX: usize = 1024;
const STACKS_MAX: usize = 1 << 12;

pub(super) static PERL: Dialect =
    Dialect { number: LANGUAGE_PERL, walk, describe, evaluates, learn: |_, _| (), look };

fn evaluates() -> (usize, usize) {
    (EXPORTS.eval.load(Relaxed), EXPORTS.eval_end.load(Relaxed))
}

fn look() -> bool {
    let key = EXPORTS.key.load(Acquire);
    if key == 0 || EXPORTS.is_seen.swap(1, Relaxed) != 0 {
        return false;
    }
    let number = |at: usize| {
        // SAFETY: three numbers of a byte, which the module exports.
        if at == 0 { 0 } else { u32::from(unsafe { (at as *const u8).read() }) }
    };
    let version = number(EXPORTS.revision.load(Relaxed)) << 8 | number(EXPORTS.version.load(Relaxed));
    let is_known = VERSIONS.contains(&version);
    if !is_known {
        unknown::note(LANGUAGE_PERL, version);
    }
    is_known
}

/// The interpreter that the calling thread runs.
fn interpreter(readable: &mut Readable) -> Option<usize> {
    // SAFETY: a variable that the module exports.
    let key = unsafe { half(EXPORTS.key.load(Relaxed)) };
    if key >= INLINE_KEYS {
        return None;
    }
    let at = VALUES_AT.wrapping_add((key as usize).wrapping_mul(16)).wrapping_add(8);
    let interpreter = readable.word(thread_pointer::thread_pointer().wrapping_add(at))?;
    (interpreter != 0).then_some(interpreter)
}

fn walk(walk: &mut Walk<'_>, frame: &mut dyn FnMut(Walked) -> bool) {
    let _ = walk_frames(walk.readable, frame);
}

fn walk_frames(readable: &mut Readable, out: &mut dyn FnMut(Walked) -> bool) -> Option<()> {
    let interpreter = interpreter(readable)?;
    let mut statement = readable.word(interpreter.wrapping_add(STATEMENT_AT))?;
    let mut stack = readable.word(interpreter.wrapping_add(STACKS_AT))?;
    for _ in 0..STACKS_MAX {
        if stack == 0 {
            break;
        }
        let contexts = readable.word(stack.wrapping_add(CONTEXTS_AT))?;
        let innermost = readable.word(stack.wrapping_add(INNERMOST_AT))? as u32 as i32;
        if innermost > CONTEXTS_MAX {
            return None;
        }
        for number in (0..=innermost).rev() {
            let context = contexts.wrapping_add((number as usize).wrapping_mul(CONTEXT_BYTES));
            let kind = readable.word(context)? & CONTEXT_KIND;
            if !matches!(kind, CALL | FORMAT | EVALUATION) {
                continue;
            }
            let subroutine =
                if kind == EVALUATION { 1 } else { readable.word(context.wrapping_add(SUBROUTINE_AT))? };
            let is_entry = kind == CALL && readable.word(context.wrapping_add(RETURN_AT))? == 0;
            if !out(of_statement(readable, subroutine, statement, is_entry)) {
                return Some(());
            }
            statement = readable.word(context.wrapping_add(OUTER_STATEMENT_AT))?;
        }
        stack = readable.word(stack.wrapping_add(OUTER_AT))?;
    }
    // The program itself.
    out(of_statement(readable, 2, statement, true));
    Some(())
}

fn of_statement(readable: &mut Readable, subroutine: usize, statement: usize, is_entry: bool) -> Walked {
    let line = readable.word(statement.wrapping_add(LINE_AT & !7)).unwrap_or(0) >> 32;
    let file = readable.word(statement.wrapping_add(FILE_AT)).unwrap_or(0);
    let body = if subroutine > 2 { readable.word(subroutine).unwrap_or(0) } else { 0 };
    let check = file ^ line.rotate_left(47) ^ body.rotate_left(19);
    Walked { code: subroutine, check, at: statement, is_entry }
}

fn describe(readable: &mut Readable, walked: &Walked, out: &mut Described<'_>) -> Option<()> {
    match walked.code {
        1 => out.name.push_all("(eval)"),
        2 => out.name.push_all("(main)"),
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
