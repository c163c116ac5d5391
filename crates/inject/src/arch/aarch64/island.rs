//! Trampoline area near a module. No area is made on this processor.

use heapr_proc::page_bytes;

use super::opening::OPENING_BYTES;
use super::{JumpBytes, NOT_CHANGED, Prologue, Way};

/// Distance in bytes from a function's `target` to its `gate`.
pub(crate) const GATE_OFFSET: u64 = 8;
/// Distance in bytes from a function's `target` to the address at which waiting threads continue.
pub(crate) const WAITED_OFFSET: u64 = GATE_OFFSET + 8;

/// Locations of a function's code in a trampoline area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Landing {
    pub(crate) entry_avma: u64,
    pub(crate) moved_avma: u64,
    /// Address of the word that gets the trampoline's address when the gate opens.
    pub(crate) target_avma: u64,
    pub(crate) trampoline_avma: u64,
    /// Whether calls are counted at its entry.
    pub(crate) counts: bool,
    /// Address at which the page marks' address is written later.
    pub(crate) marks_avma: Option<u64>,
}

impl Landing {
    /// Number of bytes of the marks' address that a jump covers.
    pub(crate) fn covered_marks_bytes(&self) -> usize {
        0
    }
}

/// A trampoline area under construction.
#[derive(Debug)]
pub(crate) struct Island {
    pub(crate) start_avma: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Island {
    /// Size in bytes of an area, in whole pages.
    pub(crate) fn bytes_for(_function_count: usize) -> u64 {
        (OPENING_BYTES as u64).next_multiple_of(page_bytes())
    }

    /// Creates an area without functions. `_gate_avma` is the address of a writable word.
    ///
    /// # Errors
    /// Always: the code is missing for this processor.
    pub(crate) fn new(start_avma: u64, _record_avma: u64, _gate_avma: u64) -> Result<Self, &'static str> {
        Self { start_avma, bytes: Vec::new() }.refused()
    }

    fn refused(self) -> Result<Self, &'static str> {
        Err(NOT_CHANGED)
    }

    /// Adds a function.
    pub(crate) fn add(&mut self, _prologue: &Prologue, _way: &Way) -> Result<Landing, &'static str> {
        Err(NOT_CHANGED)
    }

    /// Turns counting on from the beginning for a function.
    pub(crate) fn count(&mut self, _landing: Landing) {}

    /// Jump for the function's first bytes.
    pub(crate) fn jump_from(_prologue: &Prologue, _landing: Landing) -> Result<JumpBytes, &'static str> {
        Err(NOT_CHANGED)
    }
}
