//! Reads CPython frames that are not cached yet: each pointer is checked before it is followed.

use crate::languages::python::code::{self, Known};
use crate::languages::python::frame::{PythonFrame, check_of_any, is_shim};
use crate::languages::python::layout::Layout;
use crate::languages::readable::{Readable, word};
use crate::record::thread::Scope;
use crate::tree;

/// Largest number of successive frames on the evaluating function's stack.
const SHIMS_MAX: usize = 8;

/// Readable memory, and cached results for code. All zero: empty.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Reading {
    pub(super) readable: Readable,
    pub(super) known: Known,
    /// Value to add to the versions of code: see [`crate::languages::python::interpreter`].
    pub(super) interpreter: u64,
}

impl Reading {
    /// Returns the innermost frame of a function: an evaluating function that has begun may not
    /// have entered its own frame yet.
    pub(super) fn entered(&mut self, layout: &Layout, first: usize) -> usize {
        if !layout.style.has_shims() || !self.readable.has(first, PythonFrame::bytes(layout)) {
            return first;
        }
        // SAFETY: readable.
        unsafe { if is_shim(layout, first) { word(first.wrapping_add(layout.previous)) } else { first } }
    }

    /// Returns the frame outwards of the one at `address` (0: there is no further one), if both can
    /// be read.
    pub(super) fn outwards(&mut self, layout: &Layout, address: usize) -> Option<usize> {
        if !self.readable.has(address, PythonFrame::bytes(layout)) {
            return None;
        }
        // SAFETY: readable.
        let previous = unsafe { word(address.wrapping_add(layout.previous)) };
        if previous == 0 {
            return Some(0);
        }
        if !self.readable.has(previous, PythonFrame::bytes(layout)) {
            return None;
        }
        // More than one frame on an evaluating function's stack may follow outwards. There is the
        // last one, from 3.15 on, and one of a function that is being left.
        let mut outer = previous;
        for _ in 0..SHIMS_MAX {
            // SAFETY: readable.
            if outer == 0 || !unsafe { is_shim(layout, outer) } {
                return Some(outer);
            }
            // SAFETY: readable.
            outer = unsafe { word(outer.wrapping_add(layout.previous)) };
            if outer != 0 && !self.readable.has(outer, PythonFrame::bytes(layout)) {
                return None;
            }
        }
        None
    }

    /// Reads a frame and all data that belongs to it.
    pub(super) fn whole_frame(
        &mut self,
        scope: &mut Scope,
        layout: &Layout,
        index: usize,
        address: usize,
    ) -> Option<PythonFrame> {
        self.outwards(layout, address)?;
        // SAFETY: readable, as `outwards` has found.
        let mut frame = unsafe { PythonFrame::read(layout, address) };
        if layout.style.has_shims() {
            // SAFETY: readable, if the frame exists.
            frame.is_entry = frame.previous != 0 && unsafe { is_shim(layout, frame.previous) };
        }
        if !code::is_code(layout, frame.code, &mut self.readable) {
            return None;
        }
        // SAFETY: a code object.
        unsafe {
            frame.check = check_of_any(layout, frame.code);
            frame.place = self.place(scope, layout, (frame.code, frame.check, frame.instruction));
        }
        frame.part = part(index, frame.place, frame.is_entry);
        Some(frame)
    }

    /// Returns function and line of an instruction of a code object with this check.
    ///
    /// # Safety
    /// 1. A frame of the current interpreter holds the code object.
    #[inline(always)]
    pub(super) unsafe fn place(
        &mut self,
        scope: &mut Scope,
        layout: &Layout,
        (code, check, instruction): (usize, u64, usize),
    ) -> u64 {
        let check = check.wrapping_add(self.interpreter);
        // SAFETY: (1).
        unsafe {
            code::place(scope, layout, (&mut self.readable, &mut self.known), (code, check, instruction))
        }
    }
}

/// Returns a frame's part of a stack's hash, chosen so that the sum of few parts is never 0.
#[inline(always)]
pub(super) fn part(index: usize, place: u64, is_entry: bool) -> u64 {
    if place == 0 { 1 } else { tree::part_hash(index, place, u64::from(is_entry)) }
}
