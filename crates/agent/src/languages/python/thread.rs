//! The calling thread's Python state: the value of the interpreter's thread-local key, read from
//! the C library's storage.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

use heapr_known::glibc::{INLINE_KEYS, KEY_ENTRY_BYTES, KEY_VALUE_AT, KEY_VALUES_NEAR};

use crate::arch::{thread_pointer, thread_variable};
use crate::languages::python::layout::Layout;
use crate::languages::python::{self, interpreter};
use crate::languages::readable::{Readable, half, word};
use crate::modules::interpreters::PYTHON;

/// Number of threads whose value is no valid thread state, after which the layout is considered
/// wrong.
const MISSES_MAX: u32 = 1000;

/// Offset of the value from the thread pointer; 0: not found yet.
static VALUE_OFFSET: AtomicUsize = AtomicUsize::new(0);
static MISSES: AtomicU32 = AtomicU32::new(0);

/// A thread state of the calling thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State(usize);

impl State {
    /// Returns the thread state of the calling thread, if it has one.
    #[inline(always)]
    pub(crate) fn current(layout: &Layout, readable: &mut Readable) -> Option<Self> {
        let thread_pointer = thread_pointer::thread_pointer();
        let offset = VALUE_OFFSET.load(Relaxed);
        if offset == 0 {
            return Self::find(layout, thread_pointer, readable);
        }
        // SAFETY: in the thread's descriptor, at an offset where a value of the key was found.
        let value = unsafe { word(thread_pointer.wrapping_add(offset)) };
        if value == 0 {
            return None;
        }
        let mut state = value;
        if layout.current_thread != 0 {
            // The holder of the lock may run another interpreter of the process.
            let runtime = PYTHON.runtime.load(Relaxed);
            // SAFETY: inside the interpreter's variable.
            let holder = unsafe { word(runtime.wrapping_add(layout.current_thread)) };
            if holder != state && holder != 0 && readable.has(holder, layout.thread_id.wrapping_add(8)) {
                // SAFETY: readable.
                let handle = unsafe { word(holder.wrapping_add(layout.thread_id)) };
                let is_own = thread_pointer::is_handle_of(handle, thread_pointer);
                state = if is_own { holder } else { state };
            }
        }
        // SAFETY: the value of a key that only the interpreter sets, to its thread's state.
        let handle = unsafe { word(state.wrapping_add(layout.thread_id)) };
        thread_pointer::is_handle_of(handle, thread_pointer).then_some(Self(state))
    }

    /// Returns the thread state of an interpreter that stores it in a thread-local variable.
    #[inline(never)]
    fn of_variable(layout: &Layout, thread_pointer: usize, readable: &mut Readable) -> Option<Self> {
        let function = PYTHON.thread_state.load(Relaxed);
        let code = readable.bytes(function, thread_variable::CODE_BYTES)?.first_chunk()?;
        let mut read = |address: usize| readable.word(address);
        let place = thread_variable::address(code, function, thread_pointer, &mut read)?;
        let state = readable.word(place).filter(|&state| state != 0)?;
        let handle = readable.word(state.wrapping_add(layout.thread_id))?;
        thread_pointer::is_handle_of(handle, thread_pointer).then_some(Self(state))
    }

    /// Returns the thread state before the value's offset is known, and determines the offset if
    /// there is one.
    #[inline(never)]
    fn find(layout: &Layout, thread_pointer: usize, readable: &mut Readable) -> Option<Self> {
        if layout.thread_key == 0 {
            return Self::of_variable(layout, thread_pointer, readable);
        }
        let key = PYTHON.runtime.load(Relaxed).wrapping_add(layout.thread_key);
        // SAFETY: inside the interpreter's variable.
        let (is_made, key) = unsafe { (half(key), half(key.wrapping_add(4))) };
        if is_made != 1 || key >= INLINE_KEYS {
            return None;
        }
        let mut has_value = false;
        for first in KEY_VALUES_NEAR.step_by(8) {
            let entry = first.wrapping_add((key as usize).wrapping_mul(KEY_ENTRY_BYTES));
            let offset = entry.wrapping_add(KEY_VALUE_AT);
            // SAFETY: in the thread's descriptor, of 2,304 bytes.
            let value = unsafe { word(thread_pointer.wrapping_add(offset)) };
            if value == 0 || !readable.has(value, layout.thread_id.wrapping_add(8)) {
                continue;
            }
            has_value = true;
            // SAFETY: readable.
            let handle = unsafe { word(value.wrapping_add(layout.thread_id)) };
            if thread_pointer::is_handle_of(handle, thread_pointer) {
                VALUE_OFFSET.store(offset, Relaxed);
                return Some(Self(value));
            }
        }
        if has_value && MISSES.fetch_add(1, Relaxed) > MISSES_MAX {
            python::give_up();
        }
        None
    }

    /// Returns the value to add to the versions of its interpreter's code.
    #[inline(always)]
    pub(crate) fn interpreter_part(self, readable: &mut Readable) -> u64 {
        // SAFETY: a thread state.
        unsafe { interpreter::part(self.0, readable) }
    }

    /// Returns the address of the innermost frame (0: no frame), and of the structure that points
    /// to it, if there is one.
    #[inline(always)]
    pub(crate) fn frame(self, layout: &Layout) -> (usize, usize) {
        // SAFETY: a field of the thread's own state.
        let first = unsafe { word(self.0.wrapping_add(layout.frame)) };
        if layout.previous_cframe == 0 || first == 0 {
            return (first, 0);
        }
        // SAFETY: the innermost of the structures, in the state or on the thread's stack.
        (unsafe { word(first.wrapping_add(layout.cframe_frame)) }, first)
    }
}
