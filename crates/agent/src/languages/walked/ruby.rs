//! Ruby: the control frames of the thread's execution context, which a thread-local variable names.
//! To 3.2 modules export the variable and the evaluating function. Later modules hide both: the
//! variable is found by the code of a function that reads it, and the evaluating function by the
//! stacks themselves.

use core::sync::atomic::{AtomicUsize, Ordering::*};

use heapr_known::glibc::VARIABLES_LIST_AT;
use heapr_wire::LANGUAGE_RUBY;

use crate::arch::{thread_pointer, thread_variable};
use crate::frames::frame::Frame;
use crate::languages::readable::{Readable, word};
use crate::languages::text::Text;
use crate::languages::unknown;
use crate::languages::walked::cached_frames::WalkedFrame;
use crate::languages::walked::learned::Learned;
use crate::languages::walked::{Described, Dialect, END, Position, Walk, Walked};
use crate::modules::interpreters::RUBY as EXPORTS;

/// Offsets that differ between versions, from their compiled `vm_core.h` and `iseq.h`.
struct Layout {
    version: u32,
    /// Size of a control frame.
    frame_bytes: usize,
    /// Offsets in the code's body: the entries of its lines, their number, and the index of
    /// instructions.
    lines_at: usize,
    line_count_at: usize,
    index_at: usize,
    /// Whether the first line is an object of Ruby instead of a C number. If so, strings that lie
    /// in their object also have their size among its flags.
    is_of_old_values: bool,
    /// Whether code that handles an exception is named like the method that contains it.
    is_handler_unnamed: bool,
}

const LAYOUTS: [Layout; 4] = [
    Layout {
        version: 0x0301,
        frame_bytes: 64,
        lines_at: 120,
        line_count_at: 136,
        index_at: 144,
        is_of_old_values: true,
        is_handler_unnamed: false,
    },
    Layout { version: 0x0302, frame_bytes: 64, is_handler_unnamed: false, ..LAST },
    Layout { version: 0x0303, is_handler_unnamed: false, ..LAST },
    LAST,
];
const LAST: Layout = Layout {
    version: 0x0304,
    frame_bytes: 56,
    lines_at: 112,
    line_count_at: 128,
    index_at: 136,
    is_of_old_values: false,
    is_handler_unnamed: true,
};

/// Versions with a layout.
#[cfg(test)]
pub(crate) fn versions() -> [u32; 4] {
    LAYOUTS.map(|layout| layout.version)
}

/// Index of the layout.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

fn layout() -> &'static Layout {
    LAYOUTS.get(CHOSEN.load(Relaxed)).unwrap_or(&LAST)
}

/// `rb_execution_context_t`: the stack, its number of words, and the innermost control frame on it.
const STACK_AT: usize = 0;
const STACK_WORDS_AT: usize = 8;
const FRAME_AT: usize = 16;
/// `rb_control_frame_t`, an array that continues outwards. It has the instruction after the present
/// one (0: a C function), the code, and the environment, whose first word has flags.
const PC_AT: usize = 0;
const ISEQ_AT: usize = 16;
const ENVIRONMENT_AT: usize = 32;
const IS_FINISH: usize = 0x20;
/// `rb_iseq_t`: its kind, in the lowest bits, and its body.
const KIND: usize = 0xf01f;
const KIND_OF_ISEQ: usize = 0x701a;
const BODY_AT: usize = 16;
/// `rb_iseq_constant_body`.
const INSTRUCTIONS_AT: usize = 8;
const PATH_AT: usize = 64;
const LABEL_AT: usize = 80;
const FIRST_LINE_AT: usize = 88;
const BODY_BYTES: usize = 152;
/// Size of an entry of the line table.
const LINE_BYTES: usize = 12;
/// The index of instructions: for the first ones seven bits each, nine in a word; then blocks of
/// 512 bits.
const IMMEDIATE: usize = 54;
const IMMEDIATE_BYTES: usize = 48;
const BLOCK_BYTES: usize = 80;
/// `RString`, `RArray`: kind, the flag for contents outside of the object (strings) or inside
/// (arrays), and the size of old strings.
const OBJECT_KIND: usize = 0x1f;
const STRING: usize = 5;
const ARRAY: usize = 7;
const FLAG: usize = 1 << 13;
const EMBEDDED_BYTES_SHIFT: u32 = 14;
const TEXT_BYTES_MAX: usize = 4096;
/// Prefixes of the names of code that handles an exception.
const HANDLERS: [&[u8]; 2] = [b"rescue in ", b"ensure in "];
/// Largest number of frames of a stack that are walked.
const FRAMES_MAX: usize = 1 << 16;

/// Index of the module among those with thread-local variables; 0: the variable is hidden.
static TLS_MODULE: AtomicUsize = AtomicUsize::new(0);
static EVAL: Learned = Learned::new();

pub(super) struct Ruby;

impl Dialect for Ruby {
    const NUMBER: u8 = LANGUAGE_RUBY;

    fn evaluates() -> (usize, usize) {
        let exported = EXPORTS.eval.load(Relaxed);
        if exported == 0 { EVAL.range() } else { (exported, EXPORTS.eval_end.load(Relaxed)) }
    }

    fn learn(natives: &[Frame], runs: usize) {
        if EXPORTS.eval.load(Relaxed) == 0 {
            // The outermost frame of a thread belongs to no call: it only ends the stack.
            EVAL.learn(natives, runs.saturating_sub(1), EXPORTS.reader.load(Relaxed));
        }
    }

    fn look() -> bool {
        let text = EXPORTS.version.load(Acquire);
        if text == 0 || EXPORTS.is_seen.swap(1, Relaxed) != 0 {
            return false;
        }
        // SAFETY: a text that the module exports, of digits and points.
        let version = unsafe { (text as *const [u8; 4]).read() };
        let version = match version {
            [major @ b'0'..=b'9', b'.', minor @ b'0'..=b'9', b'.'] => {
                u32::from(major.wrapping_sub(b'0')) << 8 | u32::from(minor.wrapping_sub(b'0'))
            }
            _ => 0,
        };
        let eval = EXPORTS.eval.load(Relaxed);
        let module = if eval == 0 { 0 } else { crate::modules::link_map::tls_module_of(eval) };
        let number = LAYOUTS.iter().position(|layout| layout.version == version);
        let Some(number) = number else {
            unknown::note(LANGUAGE_RUBY, version);
            return false;
        };
        CHOSEN.store(number, Relaxed);
        TLS_MODULE.store(module, Relaxed);
        true
    }

    #[inline(always)]
    fn first(walk: &mut Walk) -> Option<Position> {
        let readable = &mut walk.readable;
        let context = context(readable)?;
        if !readable.has(context, FRAME_AT.wrapping_add(8)) {
            return None;
        }
        // SAFETY: readable.
        let field = |offset: usize| unsafe { word(context.wrapping_add(offset)) };
        let (at, stack, words) = (field(FRAME_AT), field(STACK_AT), field(STACK_WORDS_AT));
        let end = stack.checked_add(words.checked_mul(8)?)?;
        if at < stack || at >= end { None } else { Some([at, end, 0]) }
    }

    fn step(walk: &mut Walk, [at, end, _]: Position) -> Option<(Walked, Position)> {
        let (layout, readable) = (layout(), &mut walk.readable);
        let bytes = end.checked_sub(at)?;
        let is_whole = bytes.is_multiple_of(layout.frame_bytes) && bytes / layout.frame_bytes <= FRAMES_MAX;
        if !is_whole || !readable.has(at, layout.frame_bytes) {
            return None;
        }
        // SAFETY: inside the range that was found readable.
        let field = |offset: usize| unsafe { word(at.wrapping_add(offset)) };
        let (pc, iseq, environment) = (field(PC_AT), field(ISEQ_AT), field(ENVIRONMENT_AT));
        let flags = readable.word(environment);
        let is_entry = flags.is_some_and(|flags| flags & IS_FINISH != 0);
        let more = if flags.is_some() { environment } else { 0 };
        let mut walked = Walked { at: pc, more, is_entry, ..Walked::default() };
        if pc != 0
            && readable.word(iseq).is_some_and(|flags| flags & KIND == KIND_OF_ISEQ)
            && let Some(body) = readable.word(iseq.wrapping_add(BODY_AT))
            && readable.has(body, BODY_BYTES)
        {
            // SAFETY: readable.
            (walked.code, walked.check, walked.is_shown) = (iseq, unsafe { check(body) }, true);
        }
        let outer = at.wrapping_add(layout.frame_bytes);
        Some((walked, if outer == end { END } else { [outer, end, 0] }))
    }

    #[inline(always)]
    unsafe fn is_same(_: &mut Walk, frame: &WalkedFrame, _: Position) -> bool {
        let (walked, [at, ..]) = (&frame.walked, frame.position);
        // SAFETY: the caller's condition: a control frame, which holds its code and its
        // environment. Both could be read when they were first seen.
        unsafe {
            let field = |offset: usize| word(at.wrapping_add(offset));
            if field(PC_AT) != walked.at || field(ENVIRONMENT_AT) != walked.more || walked.more == 0 {
                return false;
            }
            if (word(walked.more) & IS_FINISH != 0) != walked.is_entry {
                return false;
            }
            if !walked.is_shown {
                return walked.at == 0;
            }
            field(ISEQ_AT) == walked.code
                && word(walked.code) & KIND == KIND_OF_ISEQ
                && check(word(walked.code.wrapping_add(BODY_AT))) == walked.check
        }
    }

    fn describe(readable: &mut Readable, walked: &Walked, out: &mut Described<'_>) -> Option<()> {
        describe(readable, walked, out)
    }
}

/// Returns a value that distinguishes code from other code at its address.
///
/// # Safety
/// 1. The body of an `rb_iseq_t` is readable at `body`.
#[inline(always)]
unsafe fn check(body: usize) -> usize {
    // SAFETY: (1).
    let field = |offset: usize| unsafe { word(body.wrapping_add(offset)) };
    let texts = field(LABEL_AT) ^ field(PATH_AT).rotate_left(11);
    texts ^ field(INSTRUCTIONS_AT).rotate_left(23) ^ body.rotate_left(17)
}

/// Returns the calling thread's execution context.
fn context(readable: &mut Readable) -> Option<usize> {
    let module = TLS_MODULE.load(Relaxed);
    if module == 0 {
        return hidden_context(readable);
    }
    // The C library's list of the thread's blocks of such variables: two words each.
    // SAFETY: a word at the thread pointer.
    let list = unsafe { word(thread_pointer::thread_pointer().wrapping_add(VARIABLES_LIST_AT)) };
    let block = readable.word(list.wrapping_add(module.wrapping_mul(16)))?;
    let context = readable.word(block.checked_add(EXPORTS.context.load(Relaxed))?)?;
    (context != 0).then_some(context)
}

/// Returns the execution context if the variable is hidden.
fn hidden_context(readable: &mut Readable) -> Option<usize> {
    let reader = EXPORTS.reader.load(Relaxed);
    let code = readable.bytes(reader, thread_variable::CODE_BYTES)?.first_chunk()?;
    let mut read = |address: usize| readable.word(address);
    let place =
        thread_variable::address_read_first(code, reader, thread_pointer::thread_pointer(), &mut read)?;
    readable.word(place).filter(|&context| context != 0)
}

fn describe(readable: &mut Readable, walked: &Walked, out: &mut Described<'_>) -> Option<()> {
    let (layout, body) = (layout(), readable.word(walked.code.wrapping_add(BODY_AT))?);
    let mut field = |offset: usize| readable.word(body.wrapping_add(offset));
    let (label, path, first_line) = (field(LABEL_AT)?, field(PATH_AT)?, field(FIRST_LINE_AT)?);
    let (instructions, lines, index) =
        (field(INSTRUCTIONS_AT)?, field(layout.lines_at)?, field(layout.index_at)?);
    let line_count = field(layout.line_count_at)? as u32 as usize;
    push_label(&mut out.name, text(readable, label)?, layout.is_handler_unnamed);
    out.file.push_bytes(path_text(readable, path)?);
    // A small number of Ruby's has its lowest bit set.
    out.first_line =
        if layout.is_of_old_values { u32::try_from(first_line >> 1).unwrap_or(0) } else { first_line as u32 };
    out.line = line(readable, (instructions, lines, index, line_count), walked.at).unwrap_or(0);
    Some(())
}

/// Writes the name as the version's own backtraces show it.
fn push_label(name: &mut Text<'_>, mut label: &[u8], is_handler_unnamed: bool) {
    while let Some((&first, rest)) = label.split_first() {
        let is_handler = |begin: &&&[u8]| is_handler_unnamed && label.starts_with(begin);
        if let Some(begin) = HANDLERS.iter().find(is_handler) {
            label = label.get(begin.len()..).unwrap_or_default();
        } else {
            name.push_bytes(&[first]);
            label = rest;
        }
    }
}

/// Returns the line of the instruction before `pc`.
fn line(
    readable: &mut Readable,
    (instructions, lines, index, line_count): (usize, usize, usize, usize),
    pc: usize,
) -> Option<u32> {
    let position = (pc.checked_sub(instructions)? / 8).saturating_sub(1);
    let number = match line_count {
        0 => return None,
        1 => 1,
        _ => rank(readable, index, position)?,
    };
    if number == 0 || number > line_count {
        return None;
    }
    let entry = readable.bytes(lines.checked_add(number.wrapping_sub(1).checked_mul(LINE_BYTES)?)?, 4)?;
    Some(u32::from_le_bytes(entry.try_into().ok()?))
}

/// Returns the number of entries that begin at or before a position.
fn rank(readable: &mut Readable, index: usize, position: usize) -> Option<usize> {
    if position < IMMEDIATE {
        let part = readable.word(index.checked_add(position / 9 * 8)?)?;
        return Some(part >> (position % 9 * 7) & 0x7f);
    }
    let rest = position.wrapping_sub(IMMEDIATE);
    let block = index.checked_add(IMMEDIATE_BYTES)?.checked_add((rest / 512).checked_mul(BLOCK_BYTES)?)?;
    let before = readable.word(block)? as u32 as usize;
    let small = rest % 512 / 64;
    let ranks = readable.word(block.wrapping_add(8))?;
    let in_block = small.checked_sub(1).map_or(0, |small| ranks >> (small * 9) & 0x1ff);
    let bits = readable.word(block.wrapping_add(16).wrapping_add(small * 8))?;
    let upto = bits << (63 - rest % 64);
    Some(before.wrapping_add(in_block).wrapping_add(upto.count_ones() as usize))
}

/// Returns the file's path: a string, or the first of two.
fn path_text(readable: &mut Readable, path: usize) -> Option<&'static [u8]> {
    let flags = readable.word(path)?;
    if flags & OBJECT_KIND != ARRAY {
        return text(readable, path);
    }
    let elements =
        if flags & FLAG != 0 { path.wrapping_add(16) } else { readable.word(path.wrapping_add(32))? };
    let first = readable.word(elements)?;
    text(readable, first)
}

/// Returns the bytes of a string.
fn text(readable: &mut Readable, string: usize) -> Option<&'static [u8]> {
    let flags = readable.word(string)?;
    if flags & OBJECT_KIND != STRING {
        return None;
    }
    if flags & FLAG == 0 && layout().is_of_old_values {
        return readable.bytes(string.wrapping_add(16), flags >> EMBEDDED_BYTES_SHIFT & 0x1f);
    }
    let bytes = readable.word(string.wrapping_add(16))?;
    let place = string.wrapping_add(24);
    let data = if flags & FLAG == 0 { place } else { readable.word(place)? };
    (bytes <= TEXT_BYTES_MAX).then(|| readable.bytes(data, bytes))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_versions_own_backtraces() {
        let name = |label: &[u8], is_handler_unnamed: bool| {
            let mut out = [0; 64];
            let mut text = Text { out: &mut out, bytes: 0 };
            push_label(&mut text, label, is_handler_unnamed);
            let bytes = text.bytes;
            String::from_utf8(out[..bytes].to_vec()).unwrap()
        };
        assert_eq!(name(b"rescue in caught", false), "rescue in caught");
        assert_eq!(name(b"rescue in caught", true), "caught");
        assert_eq!(name(b"block (2 levels) in ensure in work", true), "block (2 levels) in work");
        assert_eq!(name(b"", true), "");
    }
}
