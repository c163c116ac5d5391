//! What is known of a function that is hooked by its first instructions, and what becomes of its
//! calls.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapr_wire::InnerFunction;

use crate::hooks::Caller;

/// The first words that a function is called with; none has more.
pub(crate) type Arguments = [usize; 4];

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was made, and has answered this.
    Answered(usize),
    /// It was made, and answers nothing: a caller may keep a value in the register for answers,
    /// too.
    Silent,
    /// The function itself is to do it, unseen.
    PassOn,
}

/// One function that is hooked so.
pub(crate) struct Kept {
    pub(crate) run: fn(&Kept, &Arguments, Caller) -> Outcome,
    /// Where the function itself is, or the one that is called in its place.
    pub(crate) real: &'static AtomicUsize,
    /// Where the function itself is, if another is called in its place: that one answers null where
    /// it throws.
    pub(crate) throwing: &'static AtomicUsize,
    /// Its number in [`heapr_wire::CALLED`].
    pub(crate) called: u8,
    /// The entry of a function inside of the program.
    pub(crate) inner: Option<&'static InnerFunction>,
    /// What is noted of an inner call, too.
    pub(crate) note_inner: Option<fn(&Kept, &Arguments, Caller)>,
}

/// No other function is called in place of one.
pub(crate) static NOTHING: AtomicUsize = AtomicUsize::new(0);

impl Kept {
    /// The function itself.
    pub(crate) fn own(&self) -> usize {
        match self.throwing.load(Relaxed) {
            0 => self.real.load(Relaxed),
            own => own,
        }
    }
}
