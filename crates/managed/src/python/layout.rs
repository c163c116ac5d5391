//! Offsets of CPython's structures by version, in bytes, as compiled for 64-bit machines in release
//! builds with the interpreter's lock.
//!
//! The fields of objects that all versions share are constants of [`super::objects`].

/// Location of the collector's generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generations {
    Runtime(u64),
    Interpreter(u64),
}

/// Location of the list of arenas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArenaList {
    /// In a variable without a symbol.
    Hidden,
    /// In the interpreter.
    Interpreter(u64),
    /// In a block that the interpreter refers to.
    Block(u64),
}

/// Form of instance attributes without a dict of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// Only dicts (to 3.10).
    None,
    /// A pointer to the values 32 before the object, and one to the dict 24 before it (3.11).
    Beside,
    /// A tagged pointer 24 before the object (3.12).
    Tagged,
    /// Values behind the object's fields (3.13 on).
    Inline,
}

/// Layout of one version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Version, for example `0x030b`.
    pub(super) version: u32,
    /// Size of `_PyRuntime`, for versions that do not state their number; else 0.
    pub(super) runtime_bytes: u64,
    /// Runtime: the first interpreter.
    pub(super) first_interpreter: u64,
    // The interpreter.
    pub(super) next_interpreter: u64,
    pub(super) first_thread: u64,
    pub(super) modules: u64,
    pub(super) sys_dict: u64,
    pub(super) interpreter_bytes: u64,
    pub(super) generations: Generations,
    /// Permanent generation, from the first one on.
    pub(super) permanent: u64,
    pub(super) arenas: ArenaList,
    /// Size of a pool, and of an arena.
    pub(super) pool_bytes: u64,
    pub(super) arena_bytes: u64,
    // The thread.
    pub(super) next_thread: u64,
    pub(super) thread_id: u64,
    pub(super) thread_frame: u64,
    /// Structure between thread and frame: offset of the frame in it.
    pub(super) cframe: Option<u64>,
    pub(super) thread_dict: u64,
    // The frame.
    pub(super) frame_code: u64,
    pub(super) frame_globals: u64,
    pub(super) frame_locals: u64,
    pub(super) frame_previous: u64,
    /// Owner; 0 if frames are objects.
    pub(super) frame_owner: u64,
    pub(super) frame_object: u64,
    pub(super) frame_first_local: u64,
    pub(super) frame_top: u64,
    /// Frame object: the data of a frame that it owns.
    pub(super) object_frame: u64,
    // Code.
    pub(super) code_local_count: u64,
    pub(super) code_stack_count: u64,
    /// Tuple of the names of all locals; to 3.10 of the plain ones, before those of cells.
    pub(super) code_local_names: u64,
    pub(super) code_file: u64,
    pub(super) code_name: u64,
    pub(super) code_first_line: u64,
    // Generator: its frame, and its state.
    pub(super) generator_frame: u64,
    pub(super) generator_state: u64,
    // Function.
    pub(super) function_code: u64,
    pub(super) function_name: u64,
    // Type made at run time.
    pub(super) type_qualified_name: u64,
    pub(super) type_cached_keys: u64,
    // Texts: bytes before the characters.
    pub(super) ascii_bytes: u64,
    pub(super) compact_bytes: u64,
    pub(super) text_bytes: u64,
    pub(super) tuple_items: u64,
    pub(super) values: Values,
}

impl Layout {
    /// Whether frames are structures rather than objects (3.11 on).
    pub(super) fn has_frame_structures(&self) -> bool {
        self.frame_owner != 0
    }

    /// Whether keys of dicts have the form of 3.11 on.
    pub(super) fn has_small_keys(&self) -> bool {
        self.version >= 0x030b
    }
}

const V3_8: Layout = Layout {
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

const V3_9: Layout = Layout {
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

const V3_10: Layout = Layout {
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

const V3_11: Layout = Layout {
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

const V3_12: Layout = Layout {
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

const V3_13: Layout = Layout {
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

const V3_14: Layout = Layout {
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

const V3_15: Layout = Layout {
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
pub(super) fn of_version(version: u32) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.version == version)
}

/// Returns the layout of an old version, whose `_PyRuntime` has `runtime_bytes` bytes.
pub(super) fn of_runtime_bytes(runtime_bytes: u64) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.runtime_bytes != 0 && layout.runtime_bytes == runtime_bytes)
}
