//! The interpreter of the process that a thread runs. Each counts the versions of its code
//! separately. So code of a later interpreter can have the address and the version of code of an
//! earlier one.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::languages::readable::{Readable, word};
use crate::modules::interpreters::PYTHON;

/// Offset of the interpreter in `PyThreadState`, from 3.12 on.
const INTERPRETER_AT: usize = 16;

/// Offset of an interpreter's number; 0: code is not distinguished by a version.
static ID_AT: AtomicUsize = AtomicUsize::new(0);

pub(super) fn know(id_at: usize) {
    ID_AT.store(id_at, Relaxed);
}

/// Returns the value to add to the versions of code of a thread state's interpreter; 0 for the main
/// one.
///
/// # Safety
/// 1. `state` is a thread state of the known layout.
#[inline(always)]
pub(super) unsafe fn part(state: usize, readable: &mut Readable) -> u64 {
    let id_at = ID_AT.load(Relaxed);
    if id_at == 0 {
        return 0;
    }
    // SAFETY: (1).
    let interpreter = unsafe { word(state.wrapping_add(INTERPRETER_AT)) };
    // The main interpreter lies in the runtime.
    let away = interpreter.wrapping_sub(PYTHON.runtime.load(Relaxed));
    if away < PYTHON.runtime_bytes.load(Relaxed) { 0 } else { of_other(interpreter, id_at, readable) }
}

#[inline(never)]
fn of_other(interpreter: usize, id_at: usize, readable: &mut Readable) -> u64 {
    readable.word(interpreter.wrapping_add(id_at)).map_or(0, |id| (id as u64) << 32)
}
