//! Where CPython keeps what is read of it, by version: offsets in bytes, as the compiler lays out
//! the structures of its headers for x86-64. Builds for debugging have others; they are not in the
//! table. Of those without the interpreter's lock only what was tried is.

use core::sync::atomic::{AtomicUsize, Ordering::*};

/// How a version keeps its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Objects, one for each call of the evaluating function (to 3.10).
    Objects,
    /// Structures; the outermost that a call of the evaluating function runs is marked (3.11).
    Marked,
    /// The same, and outwards of it lies a frame on the evaluating function's own stack (3.12 on).
    Shim,
    /// The same in a build without the interpreter's lock, whose objects begin with more (3.13t,
    /// 3.14t).
    Unlocked,
}

impl Style {
    /// Whether frames lie on the evaluating function's own stack, too.
    #[inline(always)]
    pub(crate) fn has_shims(self) -> bool {
        matches!(self, Self::Shim | Self::Unlocked)
    }
}

/// How its line tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    /// Pairs of increments (to 3.9).
    Increments,
    /// Ranges (3.10).
    Ranges,
    /// Locations (3.11 on).
    Locations,
}

/// One version.
#[derive(Debug)]
pub(crate) struct Layout {
    /// `0x030b`.
    pub(crate) version: u32,
    /// Bytes of `_PyRuntime`, where the module does not say its version.
    runtime_bytes: usize,
    pub(crate) style: Style,
    pub(crate) lines: Lines,
    /// `_PyRuntimeState`: `Py_tss_t` of the thread states; 0: they are in variables of the
    /// threads'.
    pub(crate) thread_key: usize,
    /// The thread state of who holds the lock; 0: it is not there.
    pub(crate) current_thread: usize,
    /// `PyInterpreterState`: its number, where the runtime does not say where it is; 0: it is not
    /// needed, as code is not told apart by a version.
    pub(crate) interpreter_id: usize,
    /// `PyThreadState`.
    pub(crate) thread_id: usize,
    /// The innermost frame, or the structure that points to it.
    pub(crate) frame: usize,
    /// In that structure; 0 with `previous_cframe` 0: there is none.
    pub(crate) cframe_frame: usize,
    pub(crate) previous_cframe: usize,
    /// Frames (what else is read of them: see [`super::frame`]).
    pub(crate) previous: usize,
    pub(crate) instruction: usize,
    pub(crate) owner: usize,
    /// `PyCodeObject`.
    pub(crate) first_line: usize,
    pub(crate) file: usize,
    pub(crate) name: usize,
    pub(crate) line_table: usize,
    /// The first instruction, in the code or (to 3.10) in an object.
    pub(crate) instructions: usize,
    /// Texts: bytes before the characters, of those in ASCII and of others.
    pub(crate) ascii_bytes: usize,
    pub(crate) compact_bytes: usize,
    /// Bytes that objects begin with before what the other builds' begin with.
    pub(crate) object_bytes: usize,
    /// Code: the list of its copies, of which each thread runs one; 0: there is one for all.
    pub(crate) copies: usize,
    /// Texts: bits of the state before the kind of characters.
    pub(crate) kind_bit: u32,
}

/// [`Layout::owner`] of a frame on the evaluating function's stack, at least.
pub(crate) const OWNED_BY_STACK: u8 = 3;

/// `co_version` of a code object from 3.12 on: no two of an interpreter have the same.
pub(crate) const CODE_VERSION: usize = 92;

const OLDEST: Layout = Layout {
    version: 0x0308,
    runtime_bytes: 1464,
    style: Style::Objects,
    lines: Lines::Increments,
    thread_key: 1392,
    current_thread: 1368,
    interpreter_id: 0,
    thread_id: 176,
    frame: 24,
    cframe_frame: 0,
    previous_cframe: 0,
    previous: 24,
    instruction: 104,
    owner: 0,
    first_line: 40,
    file: 104,
    name: 112,
    line_table: 120,
    instructions: 48,
    ascii_bytes: 48,
    compact_bytes: 72,
    object_bytes: 0,
    copies: 0,
    kind_bit: 2,
};

const SHIMS: Layout = Layout {
    version: 0x030c,
    runtime_bytes: 0,
    style: Style::Shim,
    lines: Lines::Locations,
    thread_key: 1544,
    current_thread: 0,
    interpreter_id: 8,
    thread_id: 136,
    frame: 56,
    cframe_frame: 0,
    previous_cframe: 8,
    previous: 8,
    instruction: 56,
    owner: 70,
    first_line: 68,
    file: 112,
    // The qualified one.
    name: 128,
    line_table: 136,
    instructions: 192,
    ascii_bytes: 40,
    compact_bytes: 56,
    object_bytes: 0,
    copies: 0,
    kind_bit: 2,
};

/// What objects of a build without the lock begin with: whose thread made them, and counts of two
/// kinds.
pub(crate) const UNLOCKED_BYTES: usize = 16;

const UNLOCKED_3_13: Layout = Layout {
    version: 0x030d,
    style: Style::Unlocked,
    thread_key: 2160,
    thread_id: 152,
    frame: 72,
    previous_cframe: 0,
    first_line: 84,
    file: 128,
    name: 144,
    line_table: 152,
    instructions: 216,
    ascii_bytes: 56,
    compact_bytes: 72,
    object_bytes: UNLOCKED_BYTES,
    ..SHIMS
};

/// Builds without the interpreter's lock.
static UNLOCKED: [Layout; 2] = [
    UNLOCKED_3_13,
    Layout {
        version: 0x030e,
        thread_key: 2336,
        owner: 78,
        instructions: 232,
        copies: 224,
        kind_bit: 8,
        ..UNLOCKED_3_13
    },
];

static LAYOUTS: [Layout; 8] = [
    OLDEST,
    Layout { version: 0x0309, runtime_bytes: 656, thread_key: 584, current_thread: 568, ..OLDEST },
    Layout {
        version: 0x030a,
        runtime_bytes: 672,
        lines: Lines::Ranges,
        thread_key: 584,
        current_thread: 568,
        instruction: 96,
        ..OLDEST
    },
    Layout {
        version: 0x030b,
        style: Style::Marked,
        thread_key: 592,
        current_thread: 576,
        interpreter_id: 0,
        thread_id: 152,
        cframe_frame: 8,
        previous_cframe: 16,
        previous: 48,
        owner: 69,
        first_line: 72,
        instructions: 184,
        ascii_bytes: 48,
        compact_bytes: 72,
        ..SHIMS
    },
    SHIMS,
    Layout {
        version: 0x030d,
        thread_key: 2160,
        thread_id: 152,
        frame: 72,
        previous_cframe: 0,
        instructions: 200,
        ..SHIMS
    },
    Layout {
        version: 0x030e,
        thread_key: 2336,
        thread_id: 152,
        frame: 72,
        previous_cframe: 0,
        owner: 74,
        instructions: 208,
        ..SHIMS
    },
    Layout {
        version: 0x030f,
        thread_key: 0,
        thread_id: 176,
        frame: 72,
        previous_cframe: 0,
        owner: 74,
        instructions: 208,
        ..SHIMS
    },
];

/// The layout of a version (`0x030b`), or of an old one whose `_PyRuntime` has so many bytes.
pub(crate) fn find(version: Option<u32>, runtime_bytes: usize) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| match version {
        Some(version) => layout.version == version,
        None => layout.runtime_bytes == runtime_bytes,
    })
}

/// The same of a build without the interpreter's lock.
pub(crate) fn find_unlocked(version: u32) -> Option<&'static Layout> {
    UNLOCKED.iter().find(|layout| layout.version == version)
}

static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// The layout of the process's CPython, once it is known.
#[inline(always)]
pub(crate) fn chosen() -> Option<&'static Layout> {
    // SAFETY: null, or one of the table.
    unsafe { (CHOSEN.load(Relaxed) as *const Layout).as_ref() }
}

pub(crate) fn choose(layout: &'static Layout) {
    CHOSEN.store(core::ptr::from_ref(layout).addr(), Release);
}
