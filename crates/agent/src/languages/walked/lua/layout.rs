//! Offsets of the data that is read from Lua's own interpreter, by version. They are those of the
//! structures in its headers on 64-bit processors.

use crate::languages::walked::lua::threads::{Main, Shape};

/// Format of a version's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// One number per instruction.
    Numbers,
    /// One byte per instruction: the difference to the line before; also pairs (instruction, line)
    /// to start from.
    Differences { absolute: usize, absolute_count: usize },
}

/// Mark of the outermost call that an evaluating function runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entries {
    /// No mark (5.1).
    Unmarked,
    /// Offset of a half word, the bits that are set, and those that are not.
    Marked(usize, u32, u32),
}

/// Layout of a version.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) minor: usize,
    /// First and last release whose structures are known.
    releases: (usize, usize),
    pub(super) thread: Shape,
    /// `lua_State`: the innermost call; the outermost one, which is a part of it or pointed to.
    pub(super) call: usize,
    pub(super) base_call: usize,
    pub(super) has_array: bool,
    /// Offset, in the thread, of the innermost call's instruction; 0: it is in the call.
    pub(super) saved: usize,
    /// `CallInfo`: its size, the function's address on the stack, the call outwards, the
    /// instruction after the present one.
    pub(super) call_bytes: usize,
    pub(super) function: usize,
    pub(super) outer: usize,
    pub(super) instruction: usize,
    pub(super) entries: Entries,
    /// The bits that are marks, and the one for a tail call.
    pub(super) marks_mask: u32,
    pub(super) tail: u32,
    /// Kind of a value that is a function of Lua.
    pub(super) closure_kind: u8,
    /// `LClosure`: its prototype.
    pub(super) prototype: usize,
    /// `Proto`: its instructions and their number, lines and their number, first line, file.
    pub(super) code: usize,
    pub(super) code_count: usize,
    pub(super) lines: usize,
    pub(super) line_count: usize,
    pub(super) first_line: usize,
    pub(super) source: usize,
    pub(super) line_form: Lines,
    pub(super) text: usize,
    /// The lowest bits of an instruction, which are its operation. Operations that allocate without
    /// having stored their position in the call, and the one that may follow them.
    pub(super) operation_mask: u32,
    pub(super) silent: &'static [u32],
    pub(super) argument: u32,
}

const LATEST: Layout = Layout {
    minor: 4,
    releases: (3, 8),
    thread: Shape { bytes: 200, kind: (8, 8), global: 24, main: Main::At(264), anchor: 88, names_itself: 0 },
    call: 32,
    base_call: 96,
    has_array: false,
    saved: 0,
    call_bytes: 64,
    function: 0,
    outer: 16,
    instruction: 32,
    entries: Entries::Marked(62, 1 << 2, 1 << 1),
    marks_mask: 0xffff,
    tail: 1 << 5,
    closure_kind: 0x46,
    prototype: 24,
    code: 64,
    code_count: 24,
    lines: 88,
    line_count: 28,
    first_line: 44,
    source: 112,
    line_form: Lines::Differences { absolute: 96, absolute_count: 40 },
    text: 24,
    operation_mask: 0x7f,
    silent: &[19, 78],
    argument: 82,
};

static LAYOUTS: [Layout; 4] = [
    Layout {
        minor: 1,
        releases: (0, 5),
        thread: Shape {
            bytes: 184,
            kind: (8, 8),
            global: 32,
            main: Main::At(176),
            anchor: 168,
            names_itself: 0,
        },
        call: 40,
        base_call: 80,
        has_array: true,
        saved: 48,
        call_bytes: 40,
        function: 8,
        instruction: 24,
        entries: Entries::Unmarked,
        closure_kind: 6,
        prototype: 32,
        code: 24,
        code_count: 80,
        lines: 40,
        line_count: 84,
        first_line: 96,
        source: 64,
        line_form: Lines::Numbers,
        operation_mask: 0x3f,
        silent: &[10, 34, 36],
        argument: u32::MAX,
        ..LATEST
    },
    Layout {
        minor: 2,
        releases: (2, 4),
        thread: Shape { bytes: 208, anchor: 112, ..LATEST.thread },
        base_call: 128,
        call_bytes: 80,
        instruction: 56,
        // (A function of Lua, and not run by the call outwards.)
        entries: Entries::Marked(34, 1, 1 << 2),
        marks_mask: 0xff,
        tail: 1 << 6,
        code: 24,
        code_count: 88,
        lines: 40,
        line_count: 92,
        first_line: 104,
        source: 72,
        line_form: Lines::Numbers,
        operation_mask: 0x3f,
        silent: &[],
        ..LATEST
    },
    Layout {
        minor: 3,
        releases: (3, 6),
        thread: Shape { bytes: 208, main: Main::At(200), ..LATEST.thread },
        call_bytes: 72,
        instruction: 40,
        entries: Entries::Marked(66, 1 << 3, 0),
        code: 56,
        lines: 72,
        first_line: 40,
        source: 104,
        line_form: Lines::Numbers,
        operation_mask: 0x3f,
        silent: &[],
        ..LATEST
    },
    LATEST,
];

/// Minor versions of Lua 5 with a layout, each with its first and last release.
#[cfg(test)]
pub(crate) fn versions() -> impl Iterator<Item = (usize, (usize, usize))> {
    LAYOUTS.iter().map(|layout| (layout.minor, layout.releases))
}

/// Parses the version from a module's own description: `$LuaVersion: Lua 5.4.4 …`, or for 5.1
/// `$Lua: Lua 5.1.5 …`.
pub(super) fn release(ident: usize, bytes: usize) -> Option<[u32; 3]> {
    if ident == 0 || bytes > 4096 {
        return None;
    }
    // SAFETY: a text of `bytes` bytes, which the module exports.
    release_of(unsafe { core::slice::from_raw_parts(ident as *const u8, bytes) })
}

fn release_of(ident: &[u8]) -> Option<[u32; 3]> {
    let after = |at: usize| ident.get(at.wrapping_add(5)..);
    let at = ident.windows(5).position(|word| word == b" Lua ")?;
    match after(at)? {
        [major @ b'0'..=b'9', b'.', minor @ b'0'..=b'9', b'.', release @ b'0'..=b'9', ..] => {
            Some([major, minor, release].map(|digit| u32::from(digit.wrapping_sub(b'0'))))
        }
        _ => None,
    }
}

/// Returns the index of a release's layout.
pub(super) fn number_of(release: [u32; 3]) -> Option<usize> {
    let [major, minor, patch] = release.map(|number| number as usize);
    LAYOUTS.iter().position(|layout| {
        let (first, last) = layout.releases;
        major == 5 && layout.minor == minor && (first..=last).contains(&patch)
    })
}

/// Returns the layout with an index, plus one.
pub(super) fn by_number(number: usize) -> Option<&'static Layout> {
    LAYOUTS.get(number.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_that_is_not_known_has_no_layout() {
        let of = |ident: &[u8]| release_of(ident).map(|release| (release, number_of(release)));
        assert_eq!(of(b"$Lua: Lua 5.1.5 Copyright (C) 1994-2012 $\n"), Some(([5, 1, 5], Some(0))));
        assert_eq!(of(b"$LuaVersion: Lua 5.4.4  Copyright $"), Some(([5, 4, 4], Some(3))));
        for unknown in [[5, 4, 2], [5, 3, 2], [5, 5, 0], [5, 0, 3], [6, 4, 4]] {
            assert_eq!(number_of(unknown), None, "{unknown:?}");
        }
        for text in [b" Lua 5.1".as_slice(), b"", b" Lua 5.x.1 ", b"$LuaVersion:"] {
            assert_eq!(of(text), None);
        }
    }
}
