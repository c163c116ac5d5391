//! A frame in CPython's memory, and a cached frame.

use crate::languages::python::layout::{CODE_VERSION, Layout, OWNED_BY_STACK, Style, UNLOCKED_BYTES};
use crate::languages::readable::{half, word};

/// A cached frame, as it was when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct PythonFrame {
    pub(crate) address: usize,
    pub(crate) code: usize,
    /// Address of the instruction, or (style `Objects`) its index.
    pub(crate) instruction: usize,
    /// Value of the frame's link: the next frame outwards, or the one on the evaluating function's
    /// stack.
    pub(crate) previous: usize,
    /// Distinguishes the code from other code that has its address later.
    pub(crate) check: u64,
    /// Language, function and line: see [`crate::languages::code_table`]; 0: not a function of the
    /// program.
    pub(crate) place: u64,
    /// The frame's part of the stack's hash.
    pub(crate) part: u64,
    /// Whether the frame is the outermost one of its call of the evaluating function.
    pub(crate) is_entry: bool,
}

/// The fields of a frame that are read at each event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameNow {
    code: usize,
    previous: usize,
    pub(crate) instruction: usize,
    is_entry: bool,
}

/// Offsets of the fields that are read, by style: code, frame outwards, instruction, mark of the
/// outermost frame. (They are constants because reading an offset first would take as long as
/// reading the frame itself.)
const fn offsets<const STYLE: u8>() -> [usize; 4] {
    match STYLE {
        1 => [32, 48, 56, 68],
        2 | 3 => [0, 8, 56, 0],
        // The instruction's offset differs by version.
        _ => [32, 24, 0, 0],
    }
}

/// Offsets of the fields that distinguish code objects, by style: first line, file, name, line
/// table. They are constants for the same reason; [`Layout`] has the same values.
const fn code_offsets(style: u8) -> [usize; 4] {
    match style {
        0 => [40, 104, 112, 120],
        _ => [72, 112, 128, 136],
    }
}

impl FrameNow {
    /// # Safety
    /// 1. A frame of this style can be read at `address`.
    #[inline(always)]
    pub(crate) unsafe fn read<const STYLE: u8>(layout: &Layout, address: usize) -> Self {
        let [code, previous, instruction, is_entry] = const { offsets::<STYLE>() };
        let field = |offset: usize| address.wrapping_add(offset);
        // SAFETY: (1).
        unsafe {
            Self {
                // From 3.14 on the lowest bits tell how the reference is counted.
                code: if STYLE >= 2 { word(field(code)) & !3 } else { word(field(code)) },
                previous: word(field(previous)),
                instruction: if STYLE == 0 {
                    half(field(layout.instruction)) as usize
                } else {
                    word(field(instruction))
                },
                is_entry: match STYLE {
                    0 => true,
                    1 => (field(is_entry) as *const u8).read_volatile() != 0,
                    _ => false,
                },
            }
        }
    }

    /// True if the frame runs the cached frame's code (or other code at its address), and has the
    /// same frame outwards of it.
    #[inline(always)]
    pub(crate) fn leads<const STYLE: u8>(&self, kept: &PythonFrame) -> bool {
        (self.code ^ kept.code) | (self.previous ^ kept.previous) == 0
            && (STYLE != 1 || self.is_entry == kept.is_entry)
    }
}

impl PythonFrame {
    /// # Safety
    /// 1. The frame is one of the calling thread's, and its code is an object.
    #[inline(always)]
    pub(crate) unsafe fn read(layout: &Layout, address: usize) -> Self {
        // SAFETY: (1).
        let now = unsafe {
            match layout.style {
                Style::Objects => FrameNow::read::<0>(layout, address),
                Style::Marked => FrameNow::read::<1>(layout, address),
                Style::Shim => FrameNow::read::<2>(layout, address),
                Style::Unlocked => FrameNow::read::<3>(layout, address),
            }
        };
        let FrameNow { code, previous, instruction, is_entry } = now;
        Self { address, code, instruction, previous, check: 0, place: 0, part: 0, is_entry }
    }

    /// Number of bytes of a frame that are read.
    #[inline(always)]
    pub(crate) fn bytes(layout: &Layout) -> usize {
        if layout.style == Style::Objects { 112 } else { 80 }
    }
}

/// True if a frame lies on the evaluating function's stack.
///
/// # Safety
/// 1. The frame is readable.
#[inline(always)]
pub(crate) unsafe fn is_shim(layout: &Layout, address: usize) -> bool {
    // SAFETY: (1).
    layout.style.has_shims()
        && unsafe { (address.wrapping_add(layout.owner) as *const u8).read_volatile() } >= OWNED_BY_STACK
}

/// True if a frame is the outermost one of a thread, below all others.
///
/// # Safety
/// 1. The frame is readable.
#[inline(always)]
pub(crate) unsafe fn is_last(layout: &Layout, address: usize) -> bool {
    // SAFETY: (1).
    unsafe { is_shim(layout, address) && word(address.wrapping_add(layout.previous)) == 0 }
}

/// Returns a value that distinguishes a code object from another that has its address later: its
/// version, or a mix of its contents. A frame must hold the object.
///
/// # Safety
/// 1. `code` is a code object of a version with this style of frames.
#[inline(always)]
pub(crate) unsafe fn check_of<const STYLE: u8>(code: usize) -> u64 {
    // SAFETY: (1); its name is a text, which has its hash stored, and its line table is a bytes
    // object.
    unsafe {
        if STYLE >= 2 {
            let before = if STYLE == 3 { UNLOCKED_BYTES } else { 0 };
            return u64::from(half(code.wrapping_add(CODE_VERSION).wrapping_add(before)));
        }
        const HASH_AT: usize = 24;
        const COUNT_AT: usize = 16;
        const BYTES_AT: usize = 32;
        let [first_line, file, name, line_table] = const { code_offsets(STYLE) };
        // Each word is loaded and added by one instruction, and another one spreads it.
        let field = |at: usize| (at as *const u64).read();
        let [name, table] = [name, line_table].map(|offset| field(code.wrapping_add(offset)) as usize);
        let line = u64::from((code.wrapping_add(first_line) as *const u32).read());
        // The hash of the table is never computed by the interpreter, so its contents are used.
        [
            name.wrapping_add(HASH_AT),
            table.wrapping_add(BYTES_AT),
            table.wrapping_add(COUNT_AT),
            code.wrapping_add(file),
        ]
        .into_iter()
        .fold(line, |check, at| check.rotate_left(13).wrapping_add(field(at)))
    }
}

/// Calls [`check_of`] for the style of a layout.
///
/// # Safety
/// 1. `code` is a code object.
pub(crate) unsafe fn check_of_any(layout: &Layout, code: usize) -> u64 {
    // SAFETY: (1).
    unsafe {
        match layout.style {
            Style::Objects => check_of::<0>(code),
            Style::Marked => check_of::<1>(code),
            Style::Shim => check_of::<2>(code),
            Style::Unlocked => check_of::<3>(code),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::languages::python::layout::find;

    #[test]
    fn what_tells_code_apart_lies_where_the_versions_have_it() {
        for (version, style) in [(0x0308, 0), (0x0309, 0), (0x030a, 0), (0x030b, 1)] {
            let layout = find(Some(version), 0).unwrap();
            let of_version = [layout.first_line, layout.file, layout.name, layout.line_table];
            assert_eq!(of_version, code_offsets(style), "{version:x}");
        }
    }
}
