//! What a CPython tells debuggers of its structures, from 3.13 on: `_PyRuntime` begins with it. A
//! layout that it contradicts is not believed.

use crate::languages::python::layout::Layout;
use crate::languages::readable::word;

/// What it begins with: this, the version, and whether objects are made for threads without the
/// interpreter's lock.
const COOKIE: [u8; 8] = *b"xdebugpy";
const IS_WITHOUT_LOCK_AT: usize = 16;
/// Where an interpreter has its number.
const INTERPRETER_ID_AT: usize = 56;
/// No field of an interpreter that is read lies further on.
const INTERPRETER_BYTES_MAX: usize = 1 << 17;
/// Bytes that are read of it.
pub(super) const BYTES: usize = 584;

/// Whether a build is made for threads without the interpreter's lock: its objects begin otherwise.
///
/// # Safety
/// 1. So many bytes are readable there.
pub(super) unsafe fn is_without_lock(runtime: usize, bytes: usize) -> bool {
    // SAFETY: (1), as it has more bytes.
    bytes > IS_WITHOUT_LOCK_AT.wrapping_add(8)
        && unsafe {
            (runtime as *const [u8; 8]).read() == COOKIE
                && word(runtime.wrapping_add(IS_WITHOUT_LOCK_AT)) != 0
        }
}

/// Where an interpreter has its number, if the runtime says it.
///
/// # Safety
/// 1. So many bytes are readable there.
pub(super) unsafe fn interpreter_id(runtime: usize, bytes: usize) -> Option<usize> {
    if bytes < BYTES {
        return None;
    }
    // SAFETY: (1), as it has more bytes.
    let (cookie, offset) =
        unsafe { ((runtime as *const [u8; 8]).read(), word(runtime.wrapping_add(INTERPRETER_ID_AT))) };
    (cookie == COOKIE && offset < INTERPRETER_BYTES_MAX).then_some(offset)
}

/// Whether 3.13 says of itself what a layout says.
///
/// # Safety
/// 1. [`BYTES`] bytes are readable at `runtime`.
pub(super) unsafe fn agrees(layout: &Layout, runtime: usize) -> bool {
    let begins = layout.object_bytes;
    // Where it says it, and what.
    let told = [
        (184, layout.frame),
        (192, layout.thread_id),
        (232, layout.previous),
        (240, 0),
        (248, layout.instruction),
        (264, layout.owner),
        (280, layout.file),
        (296, layout.name),
        (304, layout.line_table),
        (312, layout.first_line),
        (344, layout.instructions),
        (360, begins.wrapping_add(8)),
        (520, begins.wrapping_add(16)),
        (528, begins.wrapping_add(32)),
        (544, begins.wrapping_add(32)),
        (552, begins.wrapping_add(16)),
        (560, layout.ascii_bytes),
    ];
    // SAFETY: (1).
    told.into_iter().all(|(at, told)| unsafe { word(runtime.wrapping_add(at)) } == told)
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
        // SAFETY: of so many bytes.
        let is_told = |runtime: [u64; 4]| unsafe { is_without_lock(runtime.as_ptr().addr(), 32) };
        assert!(is_told(runtime(&COOKIE, 1)));
        assert!(!is_told(runtime(&COOKIE, 0)));
        assert!(!is_told(runtime(b"\0\0\0\0\0\0\0\0", 1)));
    }

    /// As 3.13.15 says it, and with each of it changed.
    #[test]
    fn a_layout_that_the_interpreter_contradicts_is_not_believed() {
        let layout = find_unlocked(0x030d).unwrap();
        let mut told = [0_u64; BYTES / 8];
        let values = [
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
        for (at, value) in values {
            told[at / 8] = value;
        }
        // SAFETY: of so many bytes.
        let agrees = |told: &[u64]| unsafe { agrees(layout, told.as_ptr().addr()) };
        assert!(agrees(&told));
        for (at, _) in values {
            let mut changed = told;
            changed[at / 8] += 8;
            assert!(!agrees(&changed), "{at}");
        }
    }
}
