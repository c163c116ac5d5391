//! A function that is hooked by a detour, and the outcome of its calls.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapr_wire::InnerFunction;

use crate::hooks::Caller;

/// The first four argument words of a function; no function has more.
pub(crate) type Arguments = [usize; 4];

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The call was made, and has returned this word.
    Answered(usize),
    /// The call was made, and returns nothing: a caller may have a value in the register for
    /// results, too.
    Silent,
    /// The function itself must continue, without being recorded.
    PassOn,
}

/// One function that is hooked by a detour.
pub(crate) struct HookedFunction {
    pub(crate) run: fn(&HookedFunction, &Arguments, Caller) -> Outcome,
    /// Address of the function itself, or of the one that is called in its place.
    pub(crate) real: &'static AtomicUsize,
    /// Address of the function itself, if another is called in its place, which returns null if
    /// this one would throw.
    pub(crate) throwing: &'static AtomicUsize,
    /// Number of the function in [`heapr_wire::CALLED`].
    pub(crate) called: u8,
    /// Table entry of an embedded allocator's function.
    pub(crate) inner: Option<&'static InnerFunction>,
    /// Function that records a nested call, too.
    pub(crate) note_inner: Option<fn(&HookedFunction, &Arguments, Caller)>,
}

/// Value of [`HookedFunction::throwing`] if no other function is called in its place.
pub(crate) static NOTHING: AtomicUsize = AtomicUsize::new(0);

impl HookedFunction {
    /// Returns the address of the function itself.
    pub(crate) fn own(&self) -> usize {
        match self.throwing.load(Relaxed) {
            0 => self.real.load(Relaxed),
            own => own,
        }
    }
}
