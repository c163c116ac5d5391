//! Frames of the languages that a program is written in, among the native ones of its stacks.
//!
//! ```text
//! native stack            frames of the language      what is recorded
//! [malloc's caller]                                   [malloc's caller]
//! [evaluate]         <--  features:41, <module>:60    features:41
//!                                                     <module>:60
//!                                                     [evaluate]
//! [main]                                              [main]
//! ```
//!
//! Nothing of the program's own code runs for it: the interpreter's structures are read, of the
//! thread that stands in the hook, so that nobody changes them meanwhile. Programs without such a
//! language never come here.

pub(crate) mod code_table;
mod joined;
pub(crate) mod python;
mod readable;

use core::sync::atomic::Ordering::Relaxed;

use heapr_wire::FLAG_NO_LANGUAGES;

use crate::frames::frame::Start;
use crate::record::thread::Scope;
use crate::state::AGENT;

/// Looks whether an interpreter has turned up since.
pub(crate) fn look() {
    let is_wanted =
        AGENT.pool().is_some_and(|pool| pool.control().flags.load(Relaxed) & FLAG_NO_LANGUAGES == 0);
    if is_wanted && python::look() {
        AGENT.plain_bytes_end.store(0, Relaxed);
    }
}

/// Whether there may be frames to add.
#[inline(always)]
pub(crate) fn are_spoken() -> bool {
    AGENT.plain_bytes_end.load(Relaxed) == 0
}

/// The node of the stack that begins at `start`, whose native frames have `native`.
#[inline(never)]
pub(crate) fn whole_stack(scope: &mut Scope, start: Start, native: u32) -> u32 {
    joined::node(scope, start, native)
}
