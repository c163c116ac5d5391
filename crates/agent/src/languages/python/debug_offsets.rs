//! CPython's own table of offsets for debuggers, from 3.13 on: `_PyRuntime` begins with it. A
//! layout that it contradicts is not used.

use crate::languages::python::layout::Layout;
use crate::languages::readable::word;

/// First fields of the table: this mark, the version, and whether objects are made for threads
/// without the interpreter's lock.
const COOKIE: [u8; 8] = *b"xdebugpy";
const IS_WITHOUT_LOCK_AT: usize = 16;
/// Offset, in the table, of the offset of an interpreter's number.
const INTERPRETER_ID_AT: usize = 56;
/// Limit of the offsets of an interpreter's fields that are read.
const INTERPRETER_BYTES_MAX: usize = 1 << 17;
/// Number of bytes of the table that are read.
pub(super) const BYTES: usize = 648;

/// Offsets in the table of 3.13 for the values of [`told`].
const AT_3_13: [usize; 17] =
    [184, 192, 232, 240, 248, 264, 280, 296, 304, 312, 344, 360, 520, 528, 544, 552, 560];
/// Offsets in the table of 3.14 for the values of [`told`], with the one for the copies of code.
const AT_3_14: [usize; 18] =
    [208, 216, 256, 264, 272, 288, 320, 336, 344, 352, 384, 408, 600, 608, 624, 632, 640, 392];

/// True if a build is made for threads without the interpreter's lock: its objects begin with other
/// fields.
///
/// # Safety
/// 1. `bytes` bytes are readable at `runtime`.
pub(super) unsafe fn is_without_lock(runtime: usize, bytes: usize) -> bool {
    // SAFETY: (1), as there are more bytes.
    bytes > IS_WITHOUT_LOCK_AT.wrapping_add(8)
        && unsafe {
            (runtime as *const [u8; 8]).read() == COOKIE
                && word(runtime.wrapping_add(IS_WITHOUT_LOCK_AT)) != 0
        }
}

/// Returns the offset of an interpreter's number, if the runtime states it.
///
/// # Safety
/// 1. `bytes` bytes are readable at `runtime`.
pub(super) unsafe fn interpreter_id(runtime: usize, bytes: usize) -> Option<usize> {
    if bytes < BYTES {
        return None;
    }
    // SAFETY: (1), as there are more bytes.
    let (cookie, offset) =
        unsafe { ((runtime as *const [u8; 8]).read(), word(runtime.wrapping_add(INTERPRETER_ID_AT))) };
    (cookie == COOKIE && offset < INTERPRETER_BYTES_MAX).then_some(offset)
}

/// Returns the values that a build without the lock has in its table, if it agrees with a layout.
fn told(layout: &Layout) -> [usize; 18] {
    let begins = layout.object_bytes;
    [
        layout.frame,
        layout.thread_id,
        layout.previous,
        0,
        layout.instruction,
        layout.owner,
        layout.file,
        layout.name,
        layout.line_table,
        layout.first_line,
        layout.instructions,
        begins.wrapping_add(8),
        begins.wrapping_add(16),
        begins.wrapping_add(32),
        begins.wrapping_add(32),
        begins.wrapping_add(16),
        layout.ascii_bytes,
        layout.copies,
    ]
}

/// True if the table of a version without the lock agrees with a layout.
///
/// # Safety
/// 1. [`BYTES`] bytes are readable at `runtime`.
pub(super) unsafe fn agrees(layout: &Layout, runtime: usize) -> bool {
    let places: &[usize] = if layout.copies == 0 { &AT_3_13 } else { &AT_3_14 };
    // SAFETY: (1).
    places.iter().zip(told(layout)).all(|(at, told)| unsafe { word(runtime.wrapping_add(*at)) } == told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::languages::python::layout::find_unlocked;

    #[test]
    fn a_build_without_the_lock_is_told_by_what_its_runtime_begins_with() {
        let runtime = |cookie: &[u8; 8], is_without_lock: u64| {
            [u64::from_le_bytes(*cookie), 0x030d_00f0, is_without_lock, 0]
        };
        // SAFETY: of 32 bytes.
        let is_told = |runtime: [u64; 4]| unsafe { is_without_lock(runtime.as_ptr().addr(), 32) };
        assert!(is_told(runtime(&COOKIE, 1)));
        assert!(!is_told(runtime(&COOKIE, 0)));
        assert!(!is_told(runtime(b"\0\0\0\0\0\0\0\0", 1)));
    }

    /// Tables of 3.13.15 and 3.14.10, unchanged and with each value changed.
    #[test]
    fn a_layout_that_the_interpreter_contradicts_is_not_believed() {
        let of_3_13 = [
            (184, 72),
            (192, 152),
            (232, 8),
            (248, 56),
            (264, 70),
            (280, 128),
            (296, 144),
            (304, 152),
            (312, 84),
            (344, 216),
            (360, 24),
            (520, 32),
            (528, 48),
            (544, 48),
            (552, 32),
            (560, 56),
        ];
        let of_3_14 = [
            (208, 72),
            (216, 152),
            (256, 8),
            (272, 56),
            (288, 78),
            (320, 128),
            (336, 144),
            (344, 152),
            (352, 84),
            (384, 232),
            (392, 224),
            (408, 24),
            (600, 32),
            (608, 48),
            (624, 48),
            (632, 32),
            (640, 56),
        ];
        for (version, values) in [(0x030d, &of_3_13[..]), (0x030e, &of_3_14)] {
            let layout = find_unlocked(version).unwrap();
            let mut told = [0_u64; BYTES / 8];
            for &(at, value) in values {
                told[at / 8] = value;
            }
            // SAFETY: of [`BYTES`] bytes.
            let agrees = |told: &[u64]| unsafe { agrees(layout, told.as_ptr().addr()) };
            assert!(agrees(&told), "{version:x}");
            for &(at, _) in values {
                let mut changed = told;
                changed[at / 8] += 8;
                assert!(!agrees(&changed), "{version:x}, {at}");
            }
        }
    }
}
