//! PHP: the list of frames that the engine executes, from its globals.

use core::sync::atomic::{AtomicUsize, Ordering::*};

use heapr_wire::LANGUAGE_PHP;

use crate::arch::runtime_frames::php::GLOBALS_BYTES;
use crate::languages::readable::{Readable, word};
use crate::languages::unknown;
use crate::languages::walked::cached_frames::WalkedFrame;
use crate::languages::walked::{Described, Dialect, Position, Walk, Walked};
use crate::modules::interpreters::PHP as EXPORTS;

/// Offsets that differ between the known versions (without threads), from their headers.
#[derive(Debug)]
struct Layout {
    /// `zend_op_array`: number and address of its operations, file, first line.
    count: usize,
    operations: usize,
    file: usize,
    first_line: usize,
}

/// Versions of [`LAYOUTS`]; the size of the globals tells which.
pub(crate) const VERSIONS: [&str; 2] = ["8.2", "8.4"];

static LAYOUTS: [Layout; VERSIONS.len()] = [
    Layout { count: 80, operations: 88, file: 152, first_line: 160 },
    Layout { count: 96, operations: 104, file: 168, first_line: 176 },
];

/// Offset, in the globals, of the innermost frame.
const EXECUTED_AT: usize = 488;
/// `zend_execute_data`: operation, function, kind of call, the frame outwards.
const OPERATION_AT: usize = 0;
const FUNCTION_AT: usize = 24;
const KIND_AT: usize = 40;
const OUTER_AT: usize = 48;
const IS_TOP: usize = 1 << 17;
const FRAME_BYTES: usize = 56;
/// `zend_op_array`: kind (the lowest byte), name, class.
const NAME_AT: usize = 8;
const CLASS_AT: usize = 16;
/// Number of bytes that are read of it, and of any function.
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

/// Index of the layout.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

#[inline(always)]
fn layout() -> &'static Layout {
    let [first, last] = &LAYOUTS;
    if CHOSEN.load(Relaxed) == 0 { first } else { last }
}

pub(super) struct Php;

impl Dialect for Php {
    const NUMBER: u8 = LANGUAGE_PHP;

    fn evaluates() -> (usize, usize) {
        (EXPORTS.eval.load(Relaxed), EXPORTS.eval_end.load(Relaxed))
    }

    fn look() -> bool {
        if EXPORTS.globals.load(Acquire) == 0 || EXPORTS.is_seen.swap(1, Relaxed) != 0 {
            return false;
        }
        let globals_bytes = EXPORTS.globals_bytes.load(Relaxed);
        let is_known = |&bytes: &usize| bytes != 0 && bytes == globals_bytes;
        let number = GLOBALS_BYTES.iter().position(is_known);
        match number {
            Some(number) => CHOSEN.store(number, Relaxed),
            None => unknown::note(LANGUAGE_PHP, 0),
        }
        number.is_some()
    }

    #[inline(always)]
    fn first(_: &mut Walk) -> Option<Position> {
        // SAFETY: inside the module's globals.
        let executed = unsafe { word(EXPORTS.globals.load(Relaxed).wrapping_add(EXECUTED_AT)) };
        Some([executed, 0, 0])
    }

    fn step(walk: &mut Walk, [at, ..]: Position) -> Option<(Walked, Position)> {
        let readable = &mut walk.readable;
        if !readable.has(at, FRAME_BYTES) {
            return None;
        }
        // SAFETY: inside the readable range.
        let field = |offset: usize| unsafe { word(at.wrapping_add(offset)) };
        let function = field(FUNCTION_AT);
        let is_entry = field(KIND_AT) & IS_TOP != 0;
        let next = [field(OUTER_AT), 0, 0];
        let mut walked = Walked { code: function, is_entry, ..Walked::default() };
        if function != 0
            && readable.has(function, HEAD_BYTES)
            // SAFETY: as above.
            && unsafe { is_of_program(function) }
            && readable.has(function, CODE_BYTES)
        {
            // SAFETY: as above.
            (walked.check, walked.is_shown) = (unsafe { check(function, layout()) }, true);
            walked.at = field(OPERATION_AT);
        }
        Some((walked, next))
    }

    #[inline(always)]
    unsafe fn is_same(_: &mut Walk, frame: &WalkedFrame, next: Position) -> bool {
        let (walked, [at, ..]) = (&frame.walked, frame.position);
        // SAFETY: the caller's condition: a frame of the engine. It holds its function, which could
        // be read when it was first seen.
        unsafe {
            let field = |offset: usize| word(at.wrapping_add(offset));
            if field(FUNCTION_AT) != walked.code
                || field(OUTER_AT) != next[0]
                || (field(KIND_AT) & IS_TOP != 0) != walked.is_entry
            {
                return false;
            }
            if walked.is_shown {
                field(OPERATION_AT) == walked.at
                    && is_of_program(walked.code)
                    && check(walked.code, layout()) == walked.check
            } else {
                walked.code == 0 || !is_of_program(walked.code)
            }
        }
    }

    fn describe(readable: &mut Readable, walked: &Walked, out: &mut Described<'_>) -> Option<()> {
        describe(readable, walked, out)
    }
}

/// # Safety
/// 1. The head of a function is readable at `function`.
#[inline(always)]
unsafe fn is_of_program(function: usize) -> bool {
    // SAFETY: (1).
    matches!(unsafe { word(function) } & 0xff, FUNCTION_OF_PROGRAM | EVALUATED)
}

/// Returns a value that distinguishes a function from another at its address.
///
/// # Safety
/// 1. A function of the program is readable at `function`.
#[inline(always)]
unsafe fn check(function: usize, layout: &Layout) -> usize {
    // SAFETY: (1).
    let member = |offset: usize| unsafe { word(function.wrapping_add(offset)) };
    // (The word of the first line also contains the last one.)
    member(layout.first_line) ^ member(NAME_AT).rotate_left(23) ^ member(layout.file).rotate_left(41)
}

fn describe(readable: &mut Readable, walked: &Walked, out: &mut Described<'_>) -> Option<()> {
    let layout = layout();
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
    // An operation that stands for an exception is not in the function's list.
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
