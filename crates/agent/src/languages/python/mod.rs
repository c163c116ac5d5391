//! Frames of CPython.
//!
//! ```text
//! thread pointer -> value of the interpreter's key -> thread state -> frame -> frame -> ...
//!                                                                      | code: names, line table
//!                                                                      | instruction
//! ```
//!
//! A version whose layout is not known is left alone, and said to the recorder once. One that is
//! known is believed only when the thread state has been found to be that of the thread, and what
//! stands for code, texts and bytes to be of these types.

mod code;
mod debug_offsets;
pub(crate) mod frame;
mod interpreter;
pub(crate) mod kept;
pub(crate) mod layout;
mod line_table;
mod reading;
mod thread;

use core::sync::atomic::{AtomicU32, Ordering::*};

use heapr_wire::{LANGUAGE_PYTHON, VERSION_WITHOUT_LOCK};

use crate::languages::python::layout::Style;
use crate::languages::unknown;
use crate::modules::interpreters::PYTHON;

/// What is known of the process's CPython.
static STATE: AtomicU32 = AtomicU32::new(UNSEEN);
const UNSEEN: u32 = 0;
const FOUND: u32 = 1;
const UNKNOWN: u32 = 2;

/// Whether there is a CPython with a known layout that was not there before.
pub(crate) fn look() -> bool {
    let runtime = PYTHON.runtime.load(Acquire);
    if runtime == 0 || STATE.load(Relaxed) != UNSEEN {
        return false;
    }
    let version_avma = PYTHON.version.load(Relaxed);
    // SAFETY: a variable of the interpreter's, which it exports under this name.
    let version = (version_avma != 0).then(|| unsafe { (version_avma as *const u32).read() } >> 16);
    let bytes = PYTHON.runtime_bytes.load(Relaxed);
    // SAFETY: a variable of the interpreter's, of so many bytes.
    let is_unlocked = unsafe { debug_offsets::is_without_lock(runtime, bytes) };
    let layout = if is_unlocked {
        // SAFETY: as above.
        let agrees =
            |layout: &&_| bytes >= debug_offsets::BYTES && unsafe { debug_offsets::agrees(layout, runtime) };
        version.and_then(layout::find_unlocked).filter(agrees)
    } else {
        layout::find(version, bytes)
    };
    match layout {
        Some(layout) => {
            layout::choose(layout);
            // SAFETY: as above.
            let interpreter_id = unsafe { debug_offsets::interpreter_id(runtime, bytes) };
            interpreter::know(interpreter_id.unwrap_or(layout.interpreter_id));
            STATE.store(FOUND, Relaxed);
            true
        }
        None => {
            STATE.store(UNKNOWN, Relaxed);
            note_unknown(version.unwrap_or(0), is_unlocked);
            false
        }
    }
}

fn note_unknown(version: u32, is_unlocked: bool) {
    unknown::note(LANGUAGE_PYTHON, version | if is_unlocked { VERSION_WITHOUT_LOCK } else { 0 });
}

/// It is not what it was taken for.
#[cold]
pub(crate) fn give_up() {
    let (version, style) = layout::chosen().map_or((1, Style::Shim), |layout| (layout.version, layout.style));
    if STATE.swap(UNKNOWN, Relaxed) == FOUND {
        note_unknown(version, style == Style::Unlocked);
    }
}

/// Whether there are frames to be read.
#[inline(always)]
pub(crate) fn is_known() -> bool {
    STATE.load(Relaxed) == FOUND
}
