//! Finds the recorder's function and line for a code object and an instruction.

use core::sync::atomic::Ordering::Relaxed;

use heapr_wire::{LANGUAGE_PYTHON, LINE_MAX, language_place};

use crate::languages::answers::{self, Answers};
use crate::languages::code_table::{self, Numbered};
use crate::languages::copied_memory::CopiedMemory;
use crate::languages::python::layout::{Layout, Lines, Style};
use crate::languages::python::line_table;
use crate::languages::readable::{Readable, half, word};
use crate::modules::interpreters::PYTHON;
use crate::record::events::{self, LanguageFunction};
use crate::record::thread::Scope;

/// Number of bytes of a code object that are read. (All offsets here are larger by the layout's
/// `object_bytes`, if objects begin with more fields.)
const CODE_BYTES: usize = 216;
const TYPE_AT: usize = 8;
/// Offsets in texts: number of characters, and storage form.
const LENGTH_AT: usize = 16;
const STATE_AT: usize = 32;
/// Offsets in objects with a size: the size, and the bytes of a bytes object.
const SIZE_AT: usize = 16;
const BYTES_AT: usize = 32;
/// Longest texts that are stored, in bytes.
const NAME_BYTES_MAX: usize = 512;
const FILE_BYTES_MAX: usize = 1024;
/// Largest number of copies of a code object's instructions that are searched, and number that is
/// read at a time.
const COPIES_MAX: usize = 1 << 16;
const COPIES_TOGETHER: usize = 32;
/// Largest line table that is searched, in bytes.
const LINE_TABLE_BYTES_MAX: usize = 1 << 22;

/// Number of results that a thread caches.
const REMEMBERED: usize = 4096;

/// Buffers for texts, and cached results for (code, instruction).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Known {
    answers: Answers<REMEMBERED>,
    file: [u8; FILE_BYTES_MAX],
    name: [u8; NAME_BYTES_MAX],
}

/// True if there is a code object at an address, and all fields that its check reads are readable.
pub(crate) fn is_code(layout: &Layout, code: usize, readable: &mut Readable) -> bool {
    if !readable.has(code, CODE_BYTES.wrapping_add(layout.object_bytes)) {
        return false;
    }
    let type_at = TYPE_AT.wrapping_add(layout.object_bytes);
    let is_of = |readable: &mut Readable, offset: usize, kind: usize| {
        // SAFETY: inside the range that was found readable.
        let object = unsafe { word(code.wrapping_add(offset)) };
        readable.has(object, BYTES_AT.wrapping_add(layout.object_bytes).wrapping_add(8)) && {
            // SAFETY: readable.
            unsafe { word(object.wrapping_add(type_at)) == kind }
        }
    };
    // SAFETY: readable.
    let kind = unsafe { word(code.wrapping_add(type_at)) };
    let text = PYTHON.text_type.load(Relaxed);
    kind == PYTHON.code_type.load(Relaxed)
        && is_of(readable, layout.name, text)
        && is_of(readable, layout.file, text)
        && is_of(readable, layout.line_table, PYTHON.bytes_type.load(Relaxed))
}

/// Returns language, function and line of an instruction of a code object with this check; 0 if it
/// is no function of the program.
///
/// # Safety
/// 1. `code` is a code object: see [`is_code`].
#[inline(always)]
pub(crate) unsafe fn place(
    scope: &mut Scope,
    layout: &Layout,
    (readable, known): (&mut Readable, &mut Known),
    (code, check, instruction): (usize, u64, usize),
) -> u64 {
    let key = answers::key([code, check as usize, instruction]);
    if let Some(place) = known.answers.find(key) {
        return place;
    }
    // SAFETY: (1).
    let place = unsafe { find(scope, layout, readable, known, (code, instruction)) };
    known.answers.keep(key, place);
    place
}

#[cold]
#[inline(never)]
unsafe fn find(
    scope: &mut Scope,
    layout: &Layout,
    readable: &mut Readable,
    known: &mut Known,
    (code, instruction): (usize, usize),
) -> u64 {
    // SAFETY: (1) of `place`.
    let field = |offset: usize| unsafe { word(code.wrapping_add(offset)) };
    // SAFETY: as above.
    let first_line = unsafe { half(code.wrapping_add(layout.first_line)) };
    let table = field(layout.line_table).wrapping_add(layout.object_bytes);
    // SAFETY: a bytes object.
    let table_bytes = unsafe { word(table.wrapping_add(SIZE_AT)) }.min(LINE_TABLE_BYTES_MAX);
    let Some(table) = readable.bytes(table.wrapping_add(BYTES_AT), table_bytes) else { return 0 };
    if table.is_empty() && layout.style != Style::Objects {
        // Code that the interpreter puts between functions.
        return 0;
    }
    let line_at = |offset: usize| line_table::line(layout.lines, table, first_line, offset);
    // Before the first instruction the function has been called, but has not begun.
    let line_from =
        |offset: Option<usize>| offset.filter(|&it| it < LINE_TABLE_BYTES_MAX).map_or(first_line, line_at);
    let line = match layout.style {
        Style::Objects => {
            let units = instruction as u32 as i32;
            let bytes = if layout.lines == Lines::Ranges { units.wrapping_mul(2) } else { units };
            usize::try_from(bytes).map_or(first_line, line_at)
        }
        Style::Unlocked if layout.copies != 0 => {
            let size_at = SIZE_AT.wrapping_add(layout.object_bytes);
            // An instruction has two bytes.
            let code_bytes = field(size_at).min(LINE_TABLE_BYTES_MAX).wrapping_mul(2);
            offset_in_copy(field(layout.copies), code_bytes, instruction).map_or(0, line_at)
        }
        Style::Marked | Style::Shim | Style::Unlocked => {
            line_from(instruction.checked_sub(code.wrapping_add(layout.instructions)))
        }
    };
    let name_bytes = text(layout, readable, field(layout.name), &mut known.name, false);
    let file_bytes = text(layout, readable, field(layout.file), &mut known.file, true);
    let name = known.name.get(..name_bytes).unwrap_or_default();
    let file = known.file.get(..file_bytes).unwrap_or_default();
    let start = 0xcbf2_9ce4_8422_2325_u64 ^ u64::from(first_line);
    let bytes = name.iter().chain(&[0]).chain(file);
    let hash = bytes.fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = match code_table::number(hash ^ hash >> 32) {
        Some(Numbered { number, is_new }) => {
            if is_new {
                let function = LanguageFunction { language: LANGUAGE_PYTHON, number, first_line, name, file };
                events::language_function(scope, &function);
            }
            number
        }
        None => 0,
    };
    language_place(LANGUAGE_PYTHON, number, line.min(LINE_MAX))
}

/// Returns the offset of an instruction in the copy of its code that a thread runs: the copy that
/// contains the instruction. Another thread may replace the list by a longer one, and free this
/// one.
fn offset_in_copy(list: usize, code_bytes: usize, instruction: usize) -> Option<usize> {
    let mut memory = CopiedMemory::default();
    let count = memory.word(list)?.min(COPIES_MAX);
    let mut starts = [0_u8; COPIES_TOGETHER * 8];
    let mut at = list.checked_add(8)?;
    let mut left = count;
    while left > 0 {
        let together = left.min(COPIES_TOGETHER);
        let bytes = starts.get_mut(..together.wrapping_mul(8))?;
        memory.copy(at, bytes)?;
        let offsets = bytes
            .as_chunks::<8>()
            .0
            .iter()
            .filter_map(|&start| instruction.checked_sub(usize::from_ne_bytes(start)));
        if let Some(offset) = offsets.into_iter().find(|&offset| offset < code_bytes) {
            return Some(offset);
        }
        at = at.checked_add(together.wrapping_mul(8))?;
        left = left.wrapping_sub(together);
    }
    None
}

/// Writes the text of an object as UTF-8, from its beginning or (`is_end`) its end, and returns the
/// bytes written.
fn text(layout: &Layout, readable: &mut Readable, object: usize, out: &mut [u8], is_end: bool) -> usize {
    let at = object.wrapping_add(layout.object_bytes);
    // SAFETY: a text object: see `is_code`.
    let (length, state) = unsafe { (word(at.wrapping_add(LENGTH_AT)), half(at.wrapping_add(STATE_AT))) };
    let state = state >> layout.kind_bit;
    let (kind, is_compact, is_ascii) = ((state & 7) as usize, state >> 3 & 1 != 0, state >> 4 & 1 != 0);
    if !is_compact || !matches!(kind, 1 | 2 | 4) || length > 1 << 24 {
        return 0;
    }
    let head = if is_ascii { layout.ascii_bytes } else { layout.compact_bytes };
    let Some(data) = readable.bytes(object.wrapping_add(head), length.wrapping_mul(kind)) else { return 0 };
    // A character takes at most four bytes.
    let room = out.len() / if is_ascii { 1 } else { 4 };
    let skipped = if is_end { length.saturating_sub(room) } else { 0 };
    // (`max(1)` shows the compiler that the size is not 0.)
    let characters = data.chunks_exact(kind.max(1)).skip(skipped).take(room).map(|bytes| {
        let value = bytes.iter().rev().fold(0_u32, |value, &byte| value << 8 | u32::from(byte));
        char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    let mut written = 0_usize;
    for character in characters {
        // (A buffer for any character: the compiler sees that this does not panic.)
        let mut room = [0; 4];
        let encoded = character.encode_utf8(&mut room).as_bytes();
        let Some(place) = out.get_mut(written..written.wrapping_add(encoded.len())) else { break };
        place.iter_mut().zip(encoded).for_each(|(place, &byte)| *place = byte);
        written = written.wrapping_add(encoded.len());
    }
    written
}
