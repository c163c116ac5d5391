//! A frame, as CPython keeps it, and as it is remembered.

use crate::languages::python::layout::{Layout, OWNED_BY_STACK, Style};
use crate::languages::readable::{half, word};

/// What a kept frame was when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct PythonFrame {
    pub(crate) address: usize,
    pub(crate) code: usize,
    /// Address of the instruction, or (objects) its number.
    pub(crate) instruction: usize,
    /// As the frame has it: the next frame outwards, or the one on the evaluating function's stack.
    pub(crate) previous: usize,
    /// Tells one code from another that has its address later.
    pub(crate) check: u64,
    /// Language, function and line: see [`crate::languages::code_table`]; 0: no function of the
    /// program's.
    pub(crate) place: u64,
    /// What it gives to the stack's hash.
    pub(crate) part: u64,
    /// The outermost frame of its call of the evaluating function.
    pub(crate) is_entry: bool,
}

impl PythonFrame {
    /// # Safety
    /// 1. The frame is one of the calling thread's, and its code an object.
    #[inline(always)]
    pub(crate) unsafe fn read(layout: &Layout, address: usize) -> Self {
        // SAFETY: (1).
        unsafe {
            let field = |offset: usize| address.wrapping_add(offset);
            let code = word(field(layout.code));
            let (instruction, is_entry) = match layout.style {
                Style::Objects => (half(field(layout.instruction)) as usize, true),
                Style::Marked => {
                    let mark = (field(layout.is_entry) as *const u8).read_volatile();
                    (word(field(layout.instruction)), mark != 0)
                }
                Style::Shim => (word(field(layout.instruction)), false),
            };
            let previous = word(field(layout.previous));
            Self { address, code, instruction, previous, check: 0, place: 0, part: 0, is_entry }
        }
    }

    /// Bytes of a frame that are read.
    #[inline(always)]
    pub(crate) fn bytes(layout: &Layout) -> usize {
        if layout.style == Style::Objects { 112 } else { 72 }
    }
}

/// Whether a frame lies on the evaluating function's stack.
///
/// # Safety
/// 1. It is readable.
#[inline(always)]
pub(crate) unsafe fn is_shim(layout: &Layout, address: usize) -> bool {
    // SAFETY: (1).
    layout.style == Style::Shim
        && unsafe { (address.wrapping_add(layout.owner) as *const u8).read_volatile() } == OWNED_BY_STACK
}

/// What tells a code object from another that has its address later. It is held by a frame.
///
/// # Safety
/// 1. `code` is a code object.
#[inline(always)]
pub(crate) unsafe fn check_of(layout: &Layout, code: usize) -> u64 {
    // SAFETY: (1); its name is a text, which knows its hash, and its line table bytes.
    unsafe {
        let line = u64::from(half(code.wrapping_add(layout.first_line)));
        if layout.code_version != 0 {
            return line << 32 | u64::from(half(code.wrapping_add(layout.code_version)));
        }
        const HASH_AT: usize = 24;
        const COUNT_AT: usize = 16;
        const BYTES_AT: usize = 32;
        let name = word(code.wrapping_add(layout.name));
        let table = word(code.wrapping_add(layout.line_table));
        let file = word(code.wrapping_add(layout.file));
        let spread = |value: usize, by: u32| (value as u64).rotate_left(by);
        line.wrapping_add(spread(name, 7)).wrapping_add(spread(table, 19)).wrapping_add(spread(file, 31))
            ^ spread(word(name.wrapping_add(HASH_AT)), 43)
            ^ spread(word(table.wrapping_add(HASH_AT)), 3)
                .wrapping_add(spread(word(table.wrapping_add(COUNT_AT)), 53))
                .wrapping_add(spread(word(table.wrapping_add(BYTES_AT)), 11))
    }
}
