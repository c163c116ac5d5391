//! Offsets of the data that is read from CPython, in bytes.
//!
//! Versions 3.8 to 3.12 have a table here: the structures of their headers on 64-bit processors.
//! Fields that readers of whole heaps need, too, are in [`heapr_known::cpython`]. Debug builds have
//! other offsets and are not in the tables. From 3.13 on the interpreter states
//! the offsets: see [`super::debug_offsets`].

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering::*};

use heapr_known::cpython::{self, Layout as Known};

/// Form of a version's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Objects, one for each call of the evaluating function (to 3.10).
    Objects,
    /// Structures; the outermost frame that a call of the evaluating function runs is marked
    /// (3.11).
    Marked,
    /// Structures; outwards of a call's outermost frame lies one on the evaluating function's own
    /// stack (3.12 on).
    Shim,
    /// Structures like `Shim`, in a build without the interpreter's lock, whose objects begin with
    /// more fields (3.13t, 3.14t).
    Unlocked,
}

impl Style {
    /// True if there are also frames on the evaluating function's own stack.
    #[inline(always)]
    pub(crate) fn has_shims(self) -> bool {
        matches!(self, Self::Shim | Self::Unlocked)
    }
}

/// Format of a version's line tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    /// Pairs of increments (to 3.9).
    Increments,
    /// Ranges (3.10).
    Ranges,
    /// Locations (3.11 on).
    Locations,
}

/// Layout of one version.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Version, for example `0x030b`.
    pub(crate) version: u32,
    /// Size of `_PyRuntime` in bytes, if the module does not state its version.
    pub(super) runtime_bytes: usize,
    pub(crate) style: Style,
    pub(crate) lines: Lines,
    /// `_PyRuntimeState`: `Py_tss_t` of the thread states; 0: they are in thread-local variables.
    pub(crate) thread_key: usize,
    /// Thread state of the holder of the lock; 0: not stored there.
    pub(crate) current_thread: usize,
    /// `PyInterpreterState`: its number, if the runtime does not state the offset. 0: not needed,
    /// as code is not distinguished by a version.
    pub(crate) interpreter_id: usize,
    /// `PyThreadState`.
    pub(crate) thread_id: usize,
    /// `PyThreadState`: the innermost frame, or the structure that points to it.
    pub(crate) frame: usize,
    /// Field of that structure; 0 with `previous_cframe` 0: the structure does not exist.
    pub(crate) cframe_frame: usize,
    pub(crate) previous_cframe: usize,
    /// Frames (for the other fields see [`super::frame`]).
    pub(crate) previous: usize,
    pub(crate) instruction: usize,
    pub(crate) owner: usize,
    /// `PyCodeObject`.
    pub(crate) first_line: usize,
    pub(crate) file: usize,
    pub(crate) name: usize,
    pub(crate) line_table: usize,
    /// The first instruction, in the code object or (to 3.10) in a bytes object.
    pub(crate) instructions: usize,
    /// Texts: number of bytes before the characters, for ASCII texts and for others.
    pub(crate) ascii_bytes: usize,
    pub(crate) compact_bytes: usize,
    /// Number of bytes that objects have before the first fields of the other builds' objects.
    pub(crate) object_bytes: usize,
    /// Code: the list of its copies, of which each thread runs one; 0: all threads share the code.
    pub(crate) copies: usize,
    /// Texts: number of bits of the state before the kind of characters.
    pub(crate) kind_bit: u32,
}

/// Least value of [`Layout::owner`] for a frame on the evaluating function's stack.
pub(crate) const OWNED_BY_STACK: u8 = 3;

/// Offset of a code object's version from 3.12 on: no two objects of an interpreter have the same.
pub(crate) const CODE_VERSION: usize = 92;

/// Layout with what the common table has of a version, and other fields as in `rest`.
const fn with(known: &Known, rest: Layout) -> Layout {
    Layout {
        version: known.version,
        runtime_bytes: cpython::runtime_bytes(known) as usize,
        thread_id: known.thread_id as usize,
        frame: known.thread_frame as usize,
        cframe_frame: match known.cframe {
            Some(offset) => offset as usize,
            None => 0,
        },
        previous: known.frame_previous as usize,
        owner: known.frame_owner as usize,
        first_line: known.code_first_line as usize,
        file: known.code_file as usize,
        name: known.code_name as usize,
        ascii_bytes: known.ascii_bytes as usize,
        compact_bytes: known.compact_bytes as usize,
        ..rest
    }
}

/// Bytes by which the interpreter's lock is larger than in this table. To 3.11 it lies before the
/// thread states' key.
const LOCK_MORE: usize = cpython::LOCK_MORE_BYTES as usize;

/// Fields of 3.8 that the common table lacks; [`with`] sets the others.
const OLDEST: Layout = Layout {
    version: 0,
    runtime_bytes: 0,
    style: Style::Objects,
    lines: Lines::Increments,
    thread_key: 1392 + LOCK_MORE,
    current_thread: 1368 + LOCK_MORE,
    interpreter_id: 0,
    thread_id: 0,
    frame: 0,
    cframe_frame: 0,
    previous_cframe: 0,
    previous: 0,
    instruction: 104,
    owner: 0,
    first_line: 0,
    file: 0,
    name: 0,
    line_table: 120,
    instructions: 48,
    ascii_bytes: 0,
    compact_bytes: 0,
    object_bytes: 0,
    copies: 0,
    kind_bit: 2,
};

/// Layout of 3.12. The versions after it state their differences.
pub(super) const SHIMS: Layout = with(
    &cpython::V3_12,
    Layout {
        style: Style::Shim,
        lines: Lines::Locations,
        thread_key: 1544,
        current_thread: 0,
        interpreter_id: 8,
        previous_cframe: 8,
        instruction: 56,
        line_table: 136,
        instructions: 192,
        ..OLDEST
    },
);

/// Number of extra bytes at the beginning of objects in a build without the lock: the owning
/// thread, and two reference counts.
pub(crate) const UNLOCKED_BYTES: usize = 16;

static LAYOUTS: [Layout; 5] = [
    with(&cpython::V3_8, OLDEST),
    with(&cpython::V3_9, Layout { thread_key: 584 + LOCK_MORE, current_thread: 568 + LOCK_MORE, ..OLDEST }),
    with(
        &cpython::V3_10,
        Layout {
            lines: Lines::Ranges,
            thread_key: 584 + LOCK_MORE,
            current_thread: 568 + LOCK_MORE,
            instruction: 96,
            ..OLDEST
        },
    ),
    with(
        &cpython::V3_11,
        Layout {
            style: Style::Marked,
            thread_key: 592 + LOCK_MORE,
            current_thread: 576 + LOCK_MORE,
            interpreter_id: 0,
            previous_cframe: 16,
            instructions: 184,
            ..SHIMS
        },
    ),
    SHIMS,
];

/// Returns the layout of a version (`0x030b`), or of an old one whose `_PyRuntime` has
/// `runtime_bytes` bytes.
pub(crate) fn find(version: Option<u32>, runtime_bytes: usize) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| match version {
        Some(version) => layout.version == version,
        None => layout.runtime_bytes == runtime_bytes,
    })
}

/// Room for a layout that the interpreter states.
struct Stated(UnsafeCell<Layout>);

// SAFETY: written by one thread, before the address is published by `choose`: see
// `choose_stated`.
unsafe impl Sync for Stated {}

static STATED: Stated = Stated(UnsafeCell::new(SHIMS));

static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// Returns the layout of the process's CPython, once it is known.
#[inline(always)]
pub(crate) fn chosen() -> Option<&'static Layout> {
    // SAFETY: null, an element of the table, or the stated layout. That one was written before its
    // address was stored (Release), and stays as it is.
    unsafe { (CHOSEN.load(Acquire) as *const Layout).as_ref() }
}

pub(crate) fn choose(layout: &'static Layout) {
    CHOSEN.store(core::ptr::from_ref(layout).addr(), Release);
}

/// Chooses a layout that the interpreter states.
///
/// # Safety
/// 1. One call per process, while no layout is chosen.
pub(super) unsafe fn choose_stated(layout: Layout) {
    // SAFETY: (1): no reader has its address, and no other thread writes.
    unsafe { STATED.0.get().write(layout) };
    CHOSEN.store(STATED.0.get().addr(), Release);
}

/// Versions with a table, the oldest first.
#[cfg(test)]
pub(crate) fn tabled_versions() -> impl Iterator<Item = u32> {
    LAYOUTS.iter().map(|layout| layout.version)
}
