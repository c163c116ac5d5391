//! CPython's own table of offsets for debuggers, from 3.13 on: `_PyRuntime` begins with it.
//!
//! ```text
//! cookie, version, without lock | runtime | interpreter | thread | frame | code | object | ...
//! each section: size of the structure, then the offsets of its fields
//! ```
//!
//! Versions add fields and sections, so that sections are not at fixed positions. Each section that
//! is read is the only one of its shape. A table without one of them gives no layout.

use crate::languages::python::layout::{CODE_VERSION, Layout, SHIMS, Style, UNLOCKED_BYTES};
use crate::languages::readable::word;

/// First version whose layout is read from the table.
pub(crate) const FIRST_VERSION: u32 = 0x030d;

const COOKIE: [u8; 8] = *b"xdebugpy";
/// Number of words that are searched for sections. 3.13 has 90 words, and 3.14 less than 110.
const WORDS: usize = 160;
/// Indices of words: version, mark of a build without the interpreter's lock, offset of an
/// interpreter's number, first section that is searched.
const VERSION: usize = 1;
const IS_WITHOUT_LOCK: usize = 2;
const INTERPRETER_ID: usize = 7;
const SECTIONS: usize = 8;
/// Limits of the offsets of an interpreter's fields, and of all others that are read.
const INTERPRETER_BYTES_MAX: usize = 1 << 17;
const OFFSET_MAX: usize = 1 << 12;
/// Distance from a code object's first line to its version.
const FIRST_LINE_TO_VERSION: usize = 24;
/// Largest number of fields of a code object behind its instructions.
const CODE_FIELDS_MAX: usize = 8;
/// Distances from the size of an ASCII text's head to that of other texts, and of the whole object.
const COMPACT_BYTES: usize = 16;
const TEXT_BYTES: usize = 24;

/// Table of an interpreter.
#[derive(Debug, Clone, Copy)]
pub(super) struct DebugOffsets {
    start: usize,
}

impl DebugOffsets {
    /// Returns the table that a runtime begins with.
    ///
    /// # Safety
    /// 1. `bytes` bytes are readable at `runtime`, as long as the returned table is used.
    pub(super) unsafe fn of(runtime: usize, bytes: usize) -> Option<Self> {
        // SAFETY: (1), as there are more bytes.
        let has_table =
            bytes >= WORDS.wrapping_mul(8) && unsafe { (runtime as *const [u8; 8]).read() } == COOKIE;
        has_table.then_some(Self { start: runtime })
    }

    /// Returns a word of the table, or `usize::MAX` behind the words that are searched.
    fn word(self, index: usize) -> usize {
        if index >= WORDS {
            return usize::MAX;
        }
        // SAFETY: (1) of `of`.
        unsafe { word(self.start.wrapping_add(index.wrapping_mul(8))) }
    }

    /// Returns the word after `at` by `distance`.
    fn after(self, at: usize, distance: usize) -> usize {
        self.word(at.wrapping_add(distance))
    }

    /// Returns the index of the only section of a shape.
    fn section(self, has_shape: impl Fn(usize) -> bool) -> Option<usize> {
        let mut found = (SECTIONS..WORDS).filter(|&at| has_shape(at));
        let section = found.next()?;
        found.next().is_none().then_some(section)
    }

    /// True if a build is made for threads without the interpreter's lock: its objects begin with
    /// other fields.
    pub(super) fn is_without_lock(self) -> bool {
        self.word(IS_WITHOUT_LOCK) != 0
    }

    /// Returns the offset of an interpreter's number.
    pub(super) fn interpreter_id(self) -> Option<usize> {
        Some(self.word(INTERPRETER_ID)).filter(|&offset| offset < INTERPRETER_BYTES_MAX)
    }

    /// Returns the layout of a version, if the table states it, and heapr can read frames of it.
    pub(super) fn layout(self, version: u32) -> Option<Layout> {
        let is_without_lock = self.is_without_lock();
        let object_bytes = if is_without_lock { UNLOCKED_BYTES } else { 0 };
        let (frame_section, owner) = self.frame()?;
        let (frame, thread_id) = self.thread(frame_section)?;
        let code = self.code(object_bytes)?;
        let ascii_bytes = self.text(object_bytes)?;
        let is_of_version = self.word(VERSION) >> 16 == version as usize;
        is_of_version.then_some(Layout {
            version,
            style: if is_without_lock { Style::Unlocked } else { Style::Shim },
            thread_key: thread_key(version),
            frame,
            thread_id,
            owner,
            // The thread's state points to the frame itself.
            previous_cframe: 0,
            first_line: code.first_line,
            file: code.file,
            // The qualified name.
            name: code.file.wrapping_add(16),
            line_table: code.file.wrapping_add(24),
            instructions: code.instructions,
            copies: code.copies,
            ascii_bytes,
            compact_bytes: ascii_bytes.wrapping_add(COMPACT_BYTES),
            object_bytes,
            // The state of a text begins with a byte of its own in these builds.
            kind_bit: if is_without_lock && version >= 0x030e { 8 } else { 2 },
            ..SHIMS
        })
    }

    /// Returns the section of frames, and the offset of a frame's owner. The other offsets are
    /// those that [`super::frame`] reads.
    fn frame(self) -> Option<(usize, usize)> {
        let fields = [SHIMS.previous, 0, SHIMS.instruction];
        let has_shape = |at: usize| {
            (0..fields.len()).all(|field| Some(&self.after(at, field.wrapping_add(1))) == fields.get(field))
        };
        let at = self.section(has_shape)?;
        let owner = self.after(at, 5);
        let is_read = owner > SHIMS.instruction && owner < self.word(at).min(80);
        is_read.then_some((at, owner))
    }

    /// Returns the offsets of a thread's innermost frame, and of the number of the thread. The
    /// kernel's number of the thread follows that number.
    fn thread(self, frame_section: usize) -> Option<(usize, usize)> {
        let links = |at: usize| [1, 2, 3].map(|distance| self.after(at, distance));
        let at = self.section(|at| links(at) == [0, 8, 16] && self.after(at, 4) < self.word(at))?;
        let frame = self.after(at, 4);
        let is_pair = |at: &usize| self.after(*at, 1) == self.word(*at).wrapping_add(8);
        // More fields with frames may follow the innermost frame.
        let fields = at.wrapping_add(4)..frame_section;
        let mut others = fields.skip_while(is_pair).skip(1);
        let thread_id = self.word(others.find(is_pair)?);
        let is_read = frame < thread_id && thread_id < OFFSET_MAX && (frame | thread_id) & 7 == 0;
        is_read.then_some((frame, thread_id))
    }

    /// Returns the offsets in a code object.
    fn code(self, object_bytes: usize) -> Option<Code> {
        let names = |at: usize| [1, 2, 3, 4].map(|distance| self.after(at, distance));
        let at = self.section(|at| {
            let [file, ..] = names(at);
            file < OFFSET_MAX
                && names(at) == [0, 8, 16, 24].map(|distance| file.wrapping_add(distance))
                && self.after(at, 5) < file
                && self.word(at) > file.wrapping_add(24)
        })?;
        let (file, first_line, instructions) = (self.after(at, 1), self.after(at, 5), self.after(at, 9));
        // The next section is that of objects. Copies of the code are a field before it.
        let head = [16, 8].map(|bytes: usize| bytes.wrapping_add(object_bytes));
        let is_object =
            |fields: &usize| [0, 1].map(|distance| self.after(at.wrapping_add(*fields), distance)) == head;
        let fields = (10..CODE_FIELDS_MAX.wrapping_add(10)).find(is_object)?;
        let copies = if object_bytes != 0 && fields > 10 { self.after(at, 10) } else { 0 };
        let is_read = first_line.wrapping_add(FIRST_LINE_TO_VERSION)
            == CODE_VERSION.wrapping_add(object_bytes)
            && instructions > file.wrapping_add(24)
            && instructions < OFFSET_MAX
            && copies < instructions
            && (file | instructions | copies) & 7 == 0;
        is_read.then_some(Code { file, first_line, instructions, copies })
    }

    /// Returns the size of an ASCII text's head. The sections of bytes objects and texts follow one
    /// another.
    fn text(self, object_bytes: usize) -> Option<usize> {
        let [size, data] = [16, 32].map(|bytes: usize| bytes.wrapping_add(object_bytes));
        let at = self.section(|at| {
            let [bytes_size, bytes_data] = [2, 1].map(|distance| self.word(at.wrapping_sub(distance)));
            let [state, length] = [1, 2].map(|distance| self.after(at, distance));
            [bytes_size, bytes_data, length, state] == [size, data, size, data]
                && self.word(at) == self.after(at, 3).wrapping_add(TEXT_BYTES)
        })?;
        let ascii_bytes = self.after(at, 3);
        (ascii_bytes > data && ascii_bytes < OFFSET_MAX).then_some(ascii_bytes)
    }
}

/// Offsets in a code object.
struct Code {
    file: usize,
    first_line: usize,
    instructions: usize,
    copies: usize,
}

/// Returns the offset in `_PyRuntime` of the key of the thread states, which the table does not
/// state. It is 0 from 3.15 on, where they are in a thread-local variable.
fn thread_key(version: u32) -> usize {
    match version {
        0x030d => 2160,
        0x030e => 2336,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of a table: version, whether without lock, then all sections from the thread's on.
    fn table(version: u64, is_without_lock: u64, sections: &[&[u64]]) -> Vec<u64> {
        let head = [u64::from_le_bytes(COOKIE), version << 16 | 0xf0, is_without_lock];
        let runtime_and_interpreter =
            [283_320, 608, 632, 194_968, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16];
        let mut words: Vec<u64> = head.into_iter().chain(runtime_and_interpreter).collect();
        words.extend(sections.iter().copied().flatten());
        words.resize(WORDS, 0);
        words
    }

    fn layout_of(words: &[u64], version: u32) -> Option<Layout> {
        // SAFETY: of `WORDS` words.
        unsafe { DebugOffsets::of(words.as_ptr().addr(), words.len() * 8) }?.layout(version)
    }

    /// Sections of 3.13.0, as the interpreter has them.
    const OF_3_13: &[&[u64]] = &[
        &[304, 0, 8, 16, 72, 152, 160, 232, 32],
        &[80, 8, 0, 56, 72, 70],
        &[208, 112, 120, 128, 136, 68, 52, 96, 104, 200],
        &[16, 8],
        &[416, 24, 88, 168],
        &[32, 24, 16],
        &[40, 24, 16],
        &[48, 32, 40],
        &[24, 16],
        &[32, 16, 24],
        &[40, 16, 32],
        &[64, 32, 16, 40],
        &[240, 200],
    ];
    /// Sections of 3.14 without the lock, with the values of 3.14.10 where heapr reads them.
    const OF_3_14T: &[&[u64]] = &[
        &[824, 0, 8, 16, 72, 152, 160, 224, 32],
        &[88, 8, 0, 56, 80, 78, 64, 72],
        &[240, 128, 136, 144, 152, 84, 68, 112, 120, 232, 224],
        &[32, 24],
        &[432, 40, 104, 184],
        &[56, 48, 32],
        &[56, 40, 32],
        &[216, 40, 48, 56],
        &[64, 48, 56],
        &[40, 32],
        &[48, 32, 40],
        &[56, 32, 48],
        &[80, 48, 32, 56],
        &[240, 200],
    ];
    /// Sections of 3.15, whose threads have more fields with frames, and whose lists of a tuple and
    /// of a list resemble a text.
    const OF_3_15: &[&[u64]] = &[
        &[840, 0, 8, 16, 72, 80, 88, 176, 184, 240, 32, 40, 48, 136, 264],
        &[0],
        &[88, 8, 0, 56, 80, 74, 64, 0],
        &[216, 112, 120, 128, 136, 68, 52, 96, 104, 208, 0],
        &[16, 8],
        &[416, 24, 88, 168],
        &[40, 32, 16],
        &[40, 24, 16],
        &[200, 24, 32, 40],
        &[48, 32, 40],
        &[24, 16],
        &[32, 16, 24],
        &[40, 16, 32],
        &[64, 32, 16, 40],
        &[240, 200],
    ];

    #[test]
    fn a_version_states_its_offsets() {
        let of = |version: u32, is_without_lock, sections| {
            let found = layout_of(&table(u64::from(version), is_without_lock, sections), version).unwrap();
            (
                [found.frame, found.previous_cframe, found.thread_id, found.owner, found.thread_key],
                [
                    found.first_line,
                    found.file,
                    found.name,
                    found.line_table,
                    found.instructions,
                    found.copies,
                ],
                [found.ascii_bytes, found.compact_bytes, found.object_bytes, found.kind_bit as usize],
                found.style,
            )
        };
        assert_eq!(
            of(0x030d, 0, OF_3_13),
            ([72, 0, 152, 70, 2160], [68, 112, 128, 136, 200, 0], [40, 56, 0, 2], Style::Shim)
        );
        assert_eq!(
            of(0x030e, 1, OF_3_14T),
            ([72, 0, 152, 78, 2336], [84, 128, 144, 152, 232, 224], [56, 72, 16, 8], Style::Unlocked)
        );
        for version in [0x030f, 0x0310] {
            assert_eq!(
                of(version, 0, OF_3_15),
                ([72, 0, 176, 74, 0], [68, 112, 128, 136, 208, 0], [40, 56, 0, 2], Style::Shim)
            );
        }
    }

    #[test]
    fn a_table_of_another_version_or_without_its_mark_is_refused() {
        let words = table(0x030d, 0, OF_3_13);
        assert!(layout_of(&words, 0x030e).is_none());
        assert!(layout_of(&words[..100], 0x030d).is_none());
        let mut unmarked = words;
        unmarked[0] ^= 1;
        assert!(layout_of(&unmarked, 0x030d).is_none());
        assert!(layout_of(&vec![0; WORDS], 0x030d).is_none());
    }

    /// One value at a time is wrong: a fixed offset that differs, and any offset that is too large.
    #[test]
    fn an_offset_that_frames_cannot_have_is_refused() {
        let words = table(0x030d, 0, OF_3_13);
        let at = |value: &[u64]| words.windows(value.len()).position(|window| window == value).unwrap();
        let (thread, frame, code, text) =
            (at(&[304, 0, 8, 16]), at(&[80, 8, 0, 56]), at(&[208, 112]), at(&[64, 32, 16]));
        let fixed = [thread + 1, thread + 2, thread + 3, frame + 1, frame + 2, frame + 3, code + 1, code + 3]
            .into_iter()
            .chain([code + 2, code + 4, code + 5, code + 10, code + 11, text, text + 1, text + 2, text + 3]);
        for index in fixed {
            for wrong in [words[index] + 8, 1 << 20, u64::MAX] {
                let mut changed = words.clone();
                changed[index] = wrong;
                assert!(layout_of(&changed, 0x030d).is_none(), "{index}: {wrong}");
            }
        }
        let free = [thread + 4, thread + 5, frame + 5, code + 9];
        for index in free {
            for wrong in [1 << 20, u64::MAX] {
                let mut changed = words.clone();
                changed[index] = wrong;
                assert!(layout_of(&changed, 0x030d).is_none(), "{index}: {wrong}");
            }
        }
    }

    #[test]
    fn two_sections_of_one_shape_are_refused() {
        for section in [0, 1, 2, 11] {
            let mut twice = OF_3_13.to_vec();
            if section == 11 {
                twice.push(OF_3_13[10]);
            }
            twice.push(OF_3_13[section]);
            assert!(layout_of(&table(0x030d, 0, &twice), 0x030d).is_none(), "{section}");
        }
    }
}
