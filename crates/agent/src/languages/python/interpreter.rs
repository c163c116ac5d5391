//! Which interpreter of the process a thread runs: each counts the versions of its code by itself,
//! so that code of a later one can lie where that of an earlier one lay, and have its version.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::languages::readable::{Readable, word};
use crate::modules::interpreters::PYTHON;

/// `PyThreadState`: the interpreter, from 3.12 on.
const INTERPRETER_AT: usize = 16;

/// Where an interpreter has its number; 0: code is not told apart by a version.
static ID_AT: AtomicUsize = AtomicUsize::new(0);

pub(super) fn know(id_at: usize) {
    ID_AT.store(id_at, Relaxed);
}

/// What is added to the versions of code of a thread state's interpreter; 0: it is the main one.
///
/// # Safety
/// 1. `state` is a thread state of the layout that is known.
#[inline(always)]
pub(super) unsafe fn part(state: usize, readable: &mut Readable) -> u64 {
    let id_at = ID_AT.load(Relaxed);
    if id_at == 0 {
        return 0;
    }
    // SAFETY: (1).
    let interpreter = unsafe { word(state.wrapping_add(INTERPRETER_AT)) };
    // The main one lies in the runtime.
    let away = interpreter.wrapping_sub(PYTHON.runtime.load(Relaxed));
    if away < PYTHON.runtime_bytes.load(Relaxed) { 0 } else { of_other(interpreter, id_at, readable) }
}

#[inline(never)]
fn of_other(interpreter: usize, id_at: usize, readable: &mut Readable) -> u64 {
    readable.word(interpreter.wrapping_add(id_at)).map_or(0, |id| (id as u64) << 32)
}
