//! PHP: the list of what the engine executes, from its globals.

use core::sync::atomic::Ordering::*;

use heapr_wire::LANGUAGE_PHP;

use crate::languages::readable::{Readable, word};
use crate::languages::unknown;
use crate::languages::walked::{Described, Dialect, Walk, Walked};
use crate::modules::interpreters::PHP as EXPORTS;

/// What differs between the versions whose offsets are known (without threads), by their headers.
#[derive(Debug)]
struct Layout {
    /// Bytes of the globals, which tell the version.
    globals_bytes: usize,
    /// `zend_op_array`: number and place of its operations, file, first line.
    count: usize,
    operations: usize,
    file: usize,
    first_line: usize,
}

static LAYOUTS: [Layout; 2] = [
    // 8.2
    Layout { globals_bytes: 1800, count: 80, operations: 88, file: 152, first_line: 160 },
    // 8.4
    Layout { globals_bytes: 1984, count: 96, operations: 104, file: 168, first_line: 176 },
];

/// Where the globals have what is executed.
const EXECUTED_AT: usize = 488;
/// `zend_execute_data`: operation, function, kind of call, the one outwards.
const OPERATION_AT: usize = 0;
const FUNCTION_AT: usize = 24;
const KIND_AT: usize = 40;
const OUTER_AT: usize = 48;
const IS_TOP: usize = 1 << 17;
const FRAME_BYTES: usize = 56;
/// `zend_op_array`: kind (the lowest byte), name, class.
const NAME_AT: usize = 8;
const CLASS_AT: usize = 16;
/// What is read of it; of any function.
const CODE_BYTES: usize = 184;
const HEAD_BYTES: usize = 8;
const FUNCTION_OF_PROGRAM: usize = 2;
const EVALUATED: usize = 4;
/// `zend_op`.
const OPERATION_BYTES: usize = 32;
const LINE_AT: usize = 24;
/// `zend_class_entry`; `zend_string`.
const CLASS_NAME_AT: usize = 8;
const LENGTH_AT: usize = 16;
const TEXT_AT: usize = 24;
const TEXT_BYTES_MAX: usize = 4096;
const FRAMES_MAX: usize = 1 << 16;

pub(super) static PHP: Dialect =
    Dialect { number: LANGUAGE_PHP, walk, describe, evaluates, learn: |_, _| (), look };

fn evaluates() -> (usize, usize) {
    (EXPORTS.eval.load(Relaxed), EXPORTS.eval_end.load(Relaxed))
}

fn look() -> bool {
    if EXPORTS.globals.load(Acquire) == 0 || EXPORTS.is_seen.swap(1, Relaxed) != 0 {
        return false;
    }
    let is_known = layout().is_some();
    if !is_known {
        unknown::note(LANGUAGE_PHP, 0);
    }
    is_known
}

#[inline(always)]
fn layout() -> Option<&'static Layout> {
    let globals_bytes = EXPORTS.globals_bytes.load(Relaxed);
    LAYOUTS.iter().find(|layout| layout.globals_bytes == globals_bytes)
}

fn walk(walk: &mut Walk<'_>, frame: &mut dyn FnMut(Walked) -> bool) {
    let _ = walk_frames(walk.readable, frame);
}

fn walk_frames(readable: &mut Readable, out: &mut dyn FnMut(Walked) -> bool) -> Option<()> {
    let layout = layout()?;
    let mut at = readable.word(EXPORTS.globals.load(Relaxed).wrapping_add(EXECUTED_AT))?;
    for _ in 0..FRAMES_MAX {
        if at == 0 {
            break;
        }
        if !readable.has(at, FRAME_BYTES) {
            return None;
        }
        // SAFETY: inside of what can be read.
        let field = |offset: usize| unsafe { word(at.wrapping_add(offset)) };
        let (function, outer) = (field(FUNCTION_AT), field(OUTER_AT));
        let is_entry = field(KIND_AT) & IS_TOP != 0;
        let mut walked = Walked { code: 0, check: 0, at: 0, is_entry };
        if function != 0 && readable.has(function, HEAD_BYTES) {
            // SAFETY: as above.
            let member = |offset: usize| unsafe { word(function.wrapping_add(offset)) };
            if matches!(member(0) & 0xff, FUNCTION_OF_PROGRAM | EVALUATED)
                && readable.has(function, CODE_BYTES)
            {
                walked.code = function;
                walked.check = member(layout.operations)
                    ^ member(NAME_AT).rotate_left(23)
                    ^ member(layout.file).rotate_left(41);
                walked.at = field(OPERATION_AT);
            }
        }
        if !out(walked) {
            break;
        }
        at = outer;
    }
    Some(())
}

fn describe(readable: &mut Readable, walked: &Walked, out: &mut Described<'_>) -> Option<()> {
    let layout = layout()?;
    let mut field = |offset: usize| readable.word(walked.code.wrapping_add(offset));
    let (name, class, file) = (field(NAME_AT)?, field(CLASS_AT)?, field(layout.file)?);
    let (operations, count, first_line) =
        (field(layout.operations)?, field(layout.count)? as u32, field(layout.first_line)?);
    out.first_line = first_line as u32;
    if class != 0
        && let Some(class) = readable.word(class.wrapping_add(CLASS_NAME_AT))
        && let Some(class) = text(readable, class)
    {
        out.name.push_bytes(class);
        out.name.push_all("::");
    }
    match name {
        0 => out.name.push_all("{main}"),
        name => out.name.push_bytes(text(readable, name)?),
    }
    out.file.push_bytes(text(readable, file)?);
    // One that stands for an exception is none of the function's.
    let offset = walked.at.wrapping_sub(operations);
    if offset < (count as usize).wrapping_mul(OPERATION_BYTES) {
        out.line = readable.word(walked.at.wrapping_add(LINE_AT))? as u32;
    }
    Some(())
}

fn text(readable: &mut Readable, string: usize) -> Option<&'static [u8]> {
    let bytes = readable.word(string.wrapping_add(LENGTH_AT))?;
    (bytes <= TEXT_BYTES_MAX).then(|| readable.bytes(string.wrapping_add(TEXT_AT), bytes))?
}
