//! Offsets of the data that is read from V8, by version, in bytes from an object's first byte, for
//! builds without compressed pointers (Node).
//!
//! They are taken from the constants that Node's programs have for debuggers (`v8dbg_…`). Values
//! that are missing there are from V8's headers of the version.

use core::sync::atomic::{AtomicUsize, Ordering::*};

use crate::languages::v8::bytecode_sizes::{self as sizes, BytecodeSizes};
use crate::languages::v8::translation::{self, Opcodes};

/// Numbers of kinds of objects (`InstanceType`).
#[derive(Debug)]
pub(crate) struct Kinds {
    /// The first kind of functions.
    pub(crate) function: usize,
    pub(crate) bytecode_array: usize,
    pub(crate) script: usize,
    pub(crate) scope_info: usize,
    pub(crate) shared: usize,
    pub(crate) code: usize,
}

/// Number of kinds of functions.
pub(crate) const FUNCTION_KINDS: usize = 17;

/// Layout of one version.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Version, for example `0x0b03`.
    pub(crate) version: u32,
    pub(crate) kinds: Kinds,
    /// `JSFunction`: its `SharedFunctionInfo`.
    pub(crate) shared: usize,
    /// `SharedFunctionInfo`.
    pub(crate) name: usize,
    pub(crate) script: usize,
    /// `BytecodeArray`: source positions; the first instruction.
    pub(crate) positions: usize,
    pub(crate) instructions: usize,
    /// Whether source positions say if a debugger can stop there.
    pub(crate) has_breakable: bool,
    /// Number of bytes of an instruction object before the first instruction; `0x80`: the object is
    /// `Code` itself.
    pub(crate) stream_bytes: usize,
    /// `Code`.
    pub(crate) deoptimization: usize,
    pub(crate) position_table: usize,
    pub(crate) size: usize,
    pub(crate) flags: usize,
    /// Kind number of baseline code; this one plus 1 and 2 are optimized code.
    pub(crate) baseline: u32,
    /// Deoptimization data: index of the literals, and of the first entry.
    pub(crate) literals: usize,
    pub(crate) first_entry: usize,
    /// Number of bytes before the length of a safepoint table.
    pub(crate) safepoints_length: usize,
    /// Number of bytes of a safepoint table's head in Maglev's code.
    pub(crate) maglev_head_bytes: usize,
    /// Whether the flags of `ScopeInfo` are a small integer.
    pub(crate) has_smi_flags: bool,
    /// Index of the first word of a `ScopeInfo`'s variables; modules have one more word before.
    pub(crate) variables: usize,
    pub(crate) opcodes: &'static Opcodes,
    pub(crate) sizes: &'static BytecodeSizes,
}

/// Value of [`Layout::stream_bytes`] if `Code` is itself the object of its instructions.
pub(crate) const CODE_ITSELF: usize = 128;
/// Kind of a `ScopeInfo` of modules.
pub(crate) const MODULE_SCOPE: usize = 5;

const V12_4: Layout = Layout {
    version: 0x0c04,
    kinds: Kinds {
        function: 2066,
        bytecode_array: 205,
        script: 167,
        scope_info: 272,
        shared: 274,
        code: 206,
    },
    shared: 32,
    name: 16,
    script: 32,
    positions: 24,
    instructions: 64,
    has_breakable: false,
    stream_bytes: 32,
    deoptimization: 8,
    position_table: 16,
    size: 52,
    flags: 48,
    baseline: 10,
    literals: 2,
    first_entry: 11,
    safepoints_length: 0,
    maglev_head_bytes: 16,
    has_smi_flags: true,
    variables: 3,
    opcodes: &translation::V12_4,
    sizes: &sizes::V12_4,
};

const V13_6: Layout = Layout {
    version: 0x0d06,
    kinds: Kinds {
        function: 2065,
        bytecode_array: 186,
        script: 167,
        scope_info: 280,
        shared: 282,
        code: 187,
    },
    name: 24,
    script: 40,
    size: 56,
    flags: 52,
    literals: 3,
    first_entry: 12,
    safepoints_length: 4,
    has_smi_flags: false,
    variables: 5,
    opcodes: &translation::V13_6,
    sizes: &sizes::V13_6,
    ..V12_4
};

static LAYOUTS: [Layout; 6] = [
    // Node 18.
    Layout {
        version: 0x0a02,
        kinds: Kinds {
            function: 2065,
            bytecode_array: 195,
            script: 170,
            scope_info: 256,
            shared: 257,
            code: 240,
        },
        shared: 24,
        positions: 32,
        instructions: 56,
        stream_bytes: CODE_ITSELF,
        deoptimization: 16,
        position_table: 24,
        size: 40,
        baseline: 11,
        opcodes: &translation::V10_2,
        sizes: &sizes::V10_2,
        ..V12_4
    },
    // Node 20.
    Layout {
        version: 0x0b03,
        kinds: Kinds {
            function: 2066,
            bytecode_array: 191,
            script: 167,
            scope_info: 261,
            shared: 262,
            code: 245,
        },
        shared: 24,
        positions: 32,
        instructions: 54,
        stream_bytes: 16,
        deoptimization: 16,
        position_table: 24,
        size: 56,
        baseline: 11,
        opcodes: &translation::V11_3,
        sizes: &sizes::V11_3,
        ..V12_4
    },
    // Node 22.
    V12_4,
    // Node 24.
    V13_6,
    // Node 25.
    Layout {
        version: 0x0e01,
        kinds: Kinds {
            function: 2065,
            bytecode_array: 184,
            script: 165,
            scope_info: 284,
            shared: 286,
            code: 185,
        },
        has_breakable: true,
        sizes: &sizes::V14_1,
        ..V13_6
    },
    // Node 26.
    Layout {
        version: 0x0e06,
        kinds: Kinds {
            function: 2066,
            bytecode_array: 185,
            script: 166,
            scope_info: 286,
            shared: 288,
            code: 186,
        },
        has_breakable: true,
        baseline: 11,
        sizes: &sizes::V14_6,
        ..V13_6
    },
];

/// Returns the layout of a version.
pub(crate) fn find(version: u32) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.version == version)
}

/// Versions with a layout.
#[cfg(test)]
pub(crate) fn versions() -> impl Iterator<Item = u32> {
    LAYOUTS.iter().map(|layout| layout.version)
}

static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// Returns the layout of the process's V8, once it is known.
#[inline(always)]
pub(crate) fn chosen() -> Option<&'static Layout> {
    // SAFETY: null, or an element of the table.
    unsafe { (CHOSEN.load(Relaxed) as *const Layout).as_ref() }
}

pub(crate) fn choose(layout: &'static Layout) {
    CHOSEN.store(core::ptr::from_ref(layout).addr(), Release);
}
