//! Frames of CPython.
//!
//! ```text
//! thread pointer -> value of the interpreter's key -> thread state -> frame -> frame -> ...
//!                                                                      | code: names, line table
//!                                                                      | instruction
//! ```
//!
//! The layout is that of a table to 3.12, and from 3.13 on the one that the interpreter states. An
//! interpreter without a layout is reported to the recorder once, and its frames are not read. A
//! layout is used only if the thread state is verified to be the thread's. The
//! objects used as code, texts and bytes must be of these types.

pub(crate) mod cached_frames;
mod code;
pub(crate) mod debug_offsets;
pub(crate) mod frame;
mod interpreter;
pub(crate) mod layout;
mod line_table;
mod reading;
mod thread;

use core::sync::atomic::{AtomicU32, Ordering::*};

use heapr_wire::{LANGUAGE_PYTHON, VERSION_WITHOUT_LOCK};

use crate::languages::python::debug_offsets::DebugOffsets;
use crate::languages::python::layout::Style;
use crate::languages::unknown;
use crate::modules::interpreters::PYTHON;

/// State of knowledge about the process's CPython.
static STATE: AtomicU32 = AtomicU32::new(UNSEEN);
const UNSEEN: u32 = 0;
const FOUND: u32 = 1;
const UNKNOWN: u32 = 2;
/// A thread determines the layout.
const LOOKED_AT: u32 = 3;

/// True if a CPython with a known layout is found that was not there before.
pub(crate) fn look() -> bool {
    let runtime = PYTHON.runtime.load(Acquire);
    if runtime == 0 || STATE.compare_exchange(UNSEEN, LOOKED_AT, Acquire, Relaxed).is_err() {
        return false;
    }
    let version_avma = PYTHON.version.load(Relaxed);
    // SAFETY: a variable of the interpreter, which it exports under this name.
    let version = (version_avma != 0).then(|| unsafe { (version_avma as *const u32).read() } >> 16);
    let bytes = PYTHON.runtime_bytes.load(Relaxed);
    // SAFETY: a variable of the interpreter, of `bytes` bytes.
    let table = unsafe { DebugOffsets::of(runtime, bytes) };
    let is_found = match version {
        Some(version) if version >= debug_offsets::FIRST_VERSION => {
            let stated = table.and_then(|table| table.layout(version));
            // SAFETY: `LOOKED_AT` is set by one thread, and no layout has been chosen.
            stated.map(|layout| unsafe { layout::choose_stated(layout) }).is_some()
        }
        version => layout::find(version, bytes).map(layout::choose).is_some(),
    };
    match layout::chosen().filter(|_| is_found) {
        Some(layout) => {
            let interpreter_id = table.and_then(DebugOffsets::interpreter_id);
            // Without readable memory the interpreter's own offset is unknown.
            let of_table = if table.is_some() { 0 } else { layout.interpreter_id };
            interpreter::know(interpreter_id.unwrap_or(of_table));
            STATE.store(FOUND, Release);
            true
        }
        None => {
            STATE.store(UNKNOWN, Relaxed);
            note_unknown(version.unwrap_or(0), table.is_some_and(DebugOffsets::is_without_lock));
            false
        }
    }
}

fn note_unknown(version: u32, is_unlocked: bool) {
    unknown::note(LANGUAGE_PYTHON, version | if is_unlocked { VERSION_WITHOUT_LOCK } else { 0 });
}

/// Notes that the interpreter does not have the assumed layout.
#[cold]
pub(crate) fn give_up() {
    let (version, style) = layout::chosen().map_or((1, Style::Shim), |layout| (layout.version, layout.style));
    if STATE.swap(UNKNOWN, Relaxed) == FOUND {
        note_unknown(version, style == Style::Unlocked);
    }
}

/// True if there are frames to be read.
#[inline(always)]
pub(crate) fn is_known() -> bool {
    STATE.load(Relaxed) == FOUND
}
