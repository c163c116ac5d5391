//! Offsets of CPython's structures by version, in bytes, as compiled for 64-bit machines in release
//! builds with the interpreter's lock.
//!
//! The agent reads frames by them, and the reader of whole heaps reads objects. From 3.13 on the
//! interpreter states many of them itself, and these are what it does not state, or a check.

use crate::arch::MUTEX_BYTES;

/// Location of the collector's generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generations {
    /// Offset in the runtime.
    Runtime(u64),
    /// Offset in the interpreter.
    Interpreter(u64),
}

/// Location of the list of arenas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArenaList {
    /// In a variable without a symbol.
    Hidden,
    /// In the interpreter, at this offset.
    Interpreter(u64),
    /// In a block that the interpreter refers to at this offset.
    Block(u64),
}

/// Form of instance attributes without a dict of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Only dicts (to 3.10).
    None,
    /// A pointer to the values 32 before the object, and one to the dict 24 before it (3.11).
    Beside,
    /// A tagged pointer 24 before the object (3.12).
    Tagged,
    /// Values behind the object's fields (3.13 on).
    Inline,
}

/// Layout of one version: offsets and sizes in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Version, for example `0x030b`.
    pub version: u32,
    /// Size of `_PyRuntime` with locks of 40 bytes, for versions that do not state their number;
    /// else 0.
    pub runtime_bytes: u64,
    /// Runtime: the first interpreter.
    pub first_interpreter: u64,
    /// Interpreter: the next one.
    pub next_interpreter: u64,
    /// Interpreter: the first thread.
    pub first_thread: u64,
    /// Interpreter: the dict of modules.
    pub modules: u64,
    /// Interpreter: the dict of `sys`.
    pub sys_dict: u64,
    /// Size of an interpreter.
    pub interpreter_bytes: u64,
    /// The collector's first generation.
    pub generations: Generations,
    /// Permanent generation, from the first one on.
    pub permanent: u64,
    /// List of arenas.
    pub arenas: ArenaList,
    /// Size of a pool.
    pub pool_bytes: u64,
    /// Size of an arena.
    pub arena_bytes: u64,
    /// Thread: the next one.
    pub next_thread: u64,
    /// Thread: its number as the C library has it.
    pub thread_id: u64,
    /// Thread: the innermost frame, or the structure that points to it.
    pub thread_frame: u64,
    /// Structure between thread and frame: offset of the frame in it.
    pub cframe: Option<u64>,
    /// Thread: its dict.
    pub thread_dict: u64,
    /// Frame: its code.
    pub frame_code: u64,
    /// Frame: the dict of globals.
    pub frame_globals: u64,
    /// Frame: the dict of locals, of code that is no function's.
    pub frame_locals: u64,
    /// Frame: the calling one.
    pub frame_previous: u64,
    /// Frame: kind of its owner; 0 if frames are objects.
    pub frame_owner: u64,
    /// Frame: the object of it, if there is one.
    pub frame_object: u64,
    /// Frame: the first local variable.
    pub frame_first_local: u64,
    /// Frame: end of its stack, as the version has it.
    pub frame_top: u64,
    /// Frame object: the data of a frame that it owns.
    pub object_frame: u64,
    /// Code: number of local variables.
    pub code_local_count: u64,
    /// Code: largest size of the stack.
    pub code_stack_count: u64,
    /// Code: tuple of the names of all locals; to 3.10 of the plain ones, before those of cells.
    pub code_local_names: u64,
    /// Code: path of its file.
    pub code_file: u64,
    /// Code: its name; from 3.11 on the qualified one.
    pub code_name: u64,
    /// Code: its first line.
    pub code_first_line: u64,
    /// Generator: its frame.
    pub generator_frame: u64,
    /// Generator: state of its frame.
    pub generator_state: u64,
    /// Function: its code.
    pub function_code: u64,
    /// Function: its name.
    pub function_name: u64,
    /// Type that was made at run time: the qualified name.
    pub type_qualified_name: u64,
    /// Type that was made at run time: keys that its instances share.
    pub type_cached_keys: u64,
    /// Text of ASCII characters: bytes before these.
    pub ascii_bytes: u64,
    /// Other compact text: bytes before the characters.
    pub compact_bytes: u64,
    /// Text that is not compact: its size.
    pub text_bytes: u64,
    /// Tuple: the first item.
    pub tuple_items: u64,
    /// Form of attributes without a dict.
    pub values: Values,
}

impl Layout {
    /// Whether frames are structures rather than objects (3.11 on).
    #[must_use]
    pub const fn has_frame_structures(&self) -> bool {
        self.frame_owner != 0
    }

    /// Whether keys of dicts have the form of 3.11 on.
    #[must_use]
    pub const fn has_small_keys(&self) -> bool {
        self.version >= 0x030b
    }
}

/// CPython 3.8.
pub const V3_8: Layout = Layout {
    version: 0x0308,
    runtime_bytes: 1464,
    first_interpreter: 32,
    next_interpreter: 0,
    first_thread: 8,
    modules: 56,
    sys_dict: 72,
    interpreter_bytes: 2720,
    generations: Generations::Runtime(368),
    permanent: 80,
    arenas: ArenaList::Hidden,
    pool_bytes: 4096,
    arena_bytes: 256 << 10,
    next_thread: 8,
    thread_id: 176,
    thread_frame: 24,
    cframe: None,
    thread_dict: 152,
    frame_code: 32,
    frame_globals: 48,
    frame_locals: 56,
    frame_previous: 24,
    frame_owner: 0,
    frame_object: 0,
    frame_first_local: 360,
    frame_top: 72,
    object_frame: 0,
    code_local_count: 28,
    code_stack_count: 32,
    code_local_names: 72,
    code_file: 104,
    code_name: 112,
    code_first_line: 40,
    generator_frame: 16,
    generator_state: 0,
    function_code: 16,
    function_name: 104,
    type_qualified_name: 864,
    type_cached_keys: 872,
    ascii_bytes: 48,
    compact_bytes: 72,
    text_bytes: 80,
    tuple_items: 24,
    values: Values::None,
};

/// CPython 3.9.
pub const V3_9: Layout = Layout {
    version: 0x0309,
    runtime_bytes: 656,
    modules: 856,
    sys_dict: 872,
    interpreter_bytes: 5656,
    generations: Generations::Interpreter(640),
    type_qualified_name: 856,
    type_cached_keys: 864,
    ..V3_8
};

/// CPython 3.10.
pub const V3_10: Layout = Layout {
    version: 0x030a,
    runtime_bytes: 672,
    interpreter_bytes: 113_528,
    pool_bytes: 16 << 10,
    arena_bytes: 1 << 20,
    frame_first_local: 352,
    frame_top: 80,
    function_code: 48,
    function_name: 40,
    type_qualified_name: 864,
    type_cached_keys: 872,
    ..V3_9
};

/// CPython 3.11.
pub const V3_11: Layout = Layout {
    version: 0x030b,
    runtime_bytes: 0,
    first_interpreter: 40,
    first_thread: 16,
    modules: 888,
    sys_dict: 904,
    interpreter_bytes: 107_752,
    generations: Generations::Interpreter(672),
    next_thread: 8,
    thread_id: 152,
    thread_frame: 56,
    cframe: Some(8),
    thread_dict: 128,
    frame_code: 32,
    frame_globals: 8,
    frame_locals: 24,
    frame_previous: 48,
    frame_owner: 69,
    frame_object: 40,
    frame_first_local: 72,
    frame_top: 64,
    object_frame: 48,
    code_local_count: 76,
    code_stack_count: 68,
    code_local_names: 96,
    code_file: 112,
    code_name: 128,
    code_first_line: 72,
    generator_frame: 80,
    generator_state: 75,
    values: Values::Beside,
    ..V3_10
};

/// CPython 3.12.
pub const V3_12: Layout = Layout {
    version: 0x030c,
    first_thread: 72,
    modules: 944,
    sys_dict: 352,
    interpreter_bytes: 383_552,
    generations: Generations::Interpreter(136),
    arenas: ArenaList::Interpreter(3960),
    thread_id: 136,
    cframe: Some(0),
    thread_dict: 112,
    frame_code: 0,
    frame_globals: 24,
    frame_locals: 40,
    frame_previous: 8,
    frame_owner: 70,
    frame_object: 48,
    code_local_count: 72,
    code_stack_count: 64,
    code_first_line: 68,
    generator_frame: 72,
    generator_state: 67,
    type_qualified_name: 872,
    type_cached_keys: 880,
    ascii_bytes: 40,
    compact_bytes: 56,
    text_bytes: 64,
    values: Values::Tagged,
    ..V3_11
};

/// CPython 3.13.
pub const V3_13: Layout = Layout {
    version: 0x030d,
    first_interpreter: 632,
    next_interpreter: 7264,
    first_thread: 7344,
    modules: 7656,
    sys_dict: 7640,
    interpreter_bytes: 194_968,
    generations: Generations::Interpreter(7424),
    arenas: ArenaList::Block(10_800),
    thread_id: 152,
    thread_frame: 72,
    cframe: None,
    thread_dict: 128,
    object_frame: 64,
    values: Values::Inline,
    ..V3_12
};

/// CPython 3.14.
pub const V3_14: Layout = Layout {
    version: 0x030e,
    first_interpreter: 808,
    next_interpreter: 7272,
    modules: 7688,
    sys_dict: 7672,
    interpreter_bytes: 225_864,
    generations: Generations::Interpreter(7432),
    permanent: 72,
    arenas: ArenaList::Block(10_904),
    frame_owner: 74,
    frame_first_local: 80,
    object_frame: 72,
    tuple_items: 32,
    ..V3_13
};

/// CPython 3.15.
pub const V3_15: Layout = Layout {
    version: 0x030f,
    first_interpreter: 936,
    next_interpreter: 7264,
    first_thread: 7336,
    modules: 7592,
    sys_dict: 7576,
    interpreter_bytes: 226_232,
    generations: Generations::Interpreter(7408),
    arenas: ArenaList::Block(10_880),
    thread_id: 176,
    thread_dict: 152,
    type_qualified_name: 880,
    type_cached_keys: 888,
    ..V3_14
};

static LAYOUTS: [Layout; 8] = [V3_8, V3_9, V3_10, V3_11, V3_12, V3_13, V3_14, V3_15];

/// Returns the layout of a version (`0x030b`).
#[must_use]
pub fn of_version(version: u32) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.version == version)
}

/// Bytes by which the interpreter's lock is larger on this processor than in the tables. It has two
/// locks of the C library, of 40 bytes each there. To 3.11 it lies in the runtime.
pub const LOCK_MORE_BYTES: u64 = 2 * (MUTEX_BYTES - 40);

/// Returns the size of `_PyRuntime` on this processor; 0 for versions that state their number.
#[must_use]
pub const fn runtime_bytes(layout: &Layout) -> u64 {
    if layout.runtime_bytes == 0 { 0 } else { layout.runtime_bytes + LOCK_MORE_BYTES }
}

/// Returns the layout of an old version, whose `_PyRuntime` has `bytes` bytes.
#[must_use]
pub fn of_runtime_bytes(bytes: u64) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.runtime_bytes != 0 && runtime_bytes(layout) == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_by_their_number_or_by_the_size_of_the_runtime() {
        for layout in &LAYOUTS {
            assert_eq!(of_version(layout.version).map(|it| it.modules), Some(layout.modules));
        }
        assert_eq!(of_runtime_bytes(656 + LOCK_MORE_BYTES).map(|it| it.version), Some(0x0309));
        assert!(of_runtime_bytes(0).is_none() && of_version(0x0307).is_none());
    }
}
