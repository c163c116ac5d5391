//! Calls of an allocator's functions, of whatever name, and their recording.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::hooks::{self, Caller};

type Pointer = *mut c_void;

/// Calls the real function: up to four words of arguments suffice for every function in the table.
#[inline(always)]
pub(crate) fn call(real: &AtomicUsize, [a, b, c, d]: [usize; 4]) -> usize {
    // SAFETY: the allocator's function of this name; it takes at most these four words, with which
    // the program has called it, and ignores the rest.
    unsafe {
        let function: unsafe extern "C" fn(usize, usize, usize, usize) -> usize =
            core::mem::transmute(real.load(Relaxed));
        function(a, b, c, d)
    }
}

pub(crate) fn run_alloc(real: &AtomicUsize, arguments: [usize; 4], size: usize, caller: Caller) -> usize {
    let block = || call(real, arguments) as Pointer;
    hooks::new_block::<true>(caller, block, |block| hooks::allocated(block, size, caller)) as usize
}

pub(crate) fn run_free(real: &AtomicUsize, arguments: [usize; 4], block: usize, caller: Caller) -> usize {
    hooks::freed::<true, _>(block as Pointer, caller, || call(real, arguments))
}

pub(crate) fn run_realloc(
    real: &AtomicUsize,
    arguments: [usize; 4],
    block: usize,
    size: usize,
    caller: Caller,
) -> usize {
    hooks::reallocated::<true>(block as Pointer, size, caller, || call(real, arguments) as Pointer) as usize
}

/// Makes and records an in-place resize: `is_done` decides from the result whether the block has
/// the new size.
pub(crate) fn run_resize(
    real: &AtomicUsize,
    arguments: [usize; 4],
    size: usize,
    caller: Caller,
    is_done: impl FnOnce(usize) -> bool,
) -> usize {
    let [block, ..] = arguments;
    let mut answer = 0;
    hooks::reallocated::<true>(block as Pointer, size.max(1), caller, || {
        answer = call(real, arguments);
        if is_done(answer) { block as Pointer } else { core::ptr::null_mut() }
    });
    answer
}

pub(crate) fn run_posix(real: &AtomicUsize, arguments: [usize; 4], caller: Caller) -> usize {
    let [answer, _, size, _] = arguments;
    hooks::aligned_block::<true>(answer as *mut Pointer, size, caller, || call(real, arguments) as c_int)
        as usize
}

/// Returns the bytes of a zero-terminated string with its end; 0 for null.
fn string_bytes(string: usize) -> usize {
    if string == 0 {
        return 0;
    }
    // SAFETY: the result of a function that returns a zero-terminated string.
    unsafe { core::ffi::CStr::from_ptr(string as *const core::ffi::c_char) }.to_bytes_with_nul().len()
}

pub(crate) fn run_string(real: &AtomicUsize, arguments: [usize; 4], caller: Caller) -> usize {
    let block = || call(real, arguments) as Pointer;
    let record = |block: Pointer| hooks::allocated(block, string_bytes(block as usize), caller);
    hooks::new_block::<true>(caller, block, record) as usize
}

/// Functions for the kinds of calls in [`crate::hooks::real`]'s table.
pub(crate) mod kinds {
    use super::*;
    pub(crate) use super::{run_alloc as allocates, run_free as frees};

    pub(crate) fn reallocates(
        real: &AtomicUsize,
        arguments: [usize; 4],
        (block, size): (usize, usize),
        caller: Caller,
    ) -> usize {
        run_realloc(real, arguments, block, size, caller)
    }

    pub(crate) fn stores(real: &AtomicUsize, arguments: [usize; 4], _size: usize, caller: Caller) -> usize {
        run_posix(real, arguments, caller)
    }
}
