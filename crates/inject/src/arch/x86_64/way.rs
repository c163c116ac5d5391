//! Paths of a function's calls to the agent, and the code that counts calls on them.

use iced_x86::IcedError;
use iced_x86::code_asm::{CodeAssembler, CodeLabel, qword_ptr};

use super::all_registers_countdown::AllRegistersCountdown;
use super::countdown::{Countdown, Counted, MARKS_OFFSET};

/// Size in bytes of the data before counting code: its first bytes, and those of the jump that
/// replaces them.
pub(crate) const COUNTING_BYTES: usize = 16;

/// Path of a function's calls to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// Path by the calling convention, to a trampoline. Calls from `ranges` (start and size in
    /// bytes; at most two) continue in the function itself.
    Convention {
        trampoline_avma: u64,
        ranges: Vec<(u64, u64)>,
        /// Whether calls from `ranges` may have values in any register.
        keeps_inner: bool,
        /// Quantity that is counted first, if calls are sampled.
        counted: Option<(Counted, Countdown)>,
    },
    /// Path that preserves all registers and flags, and passes the address of the agent's handle of
    /// the function. A compiler that sees caller and function together lets the caller hold a value
    /// in any register that the function does not use.
    Kept {
        entry_avma: u64,
        function_avma: u64,
        /// Plan for counting first, if calls are sampled.
        counted: Option<AllRegistersCountdown>,
    },
}

/// Kind of the code that counts calls.
pub(super) enum Counting<'a> {
    Convention(Counted, Countdown),
    Kept(&'a AllRegistersCountdown),
}

impl Way {
    pub(super) fn counting(&self) -> Option<Counting<'_>> {
        match self {
            Self::Convention { counted, keeps_inner: false, .. } => {
                counted.map(|(counted, countdown)| Counting::Convention(counted, countdown))
            }
            Self::Convention { .. } => None,
            Self::Kept { counted, .. } => counted.as_ref().map(Counting::Kept),
        }
    }
}

impl Counting<'_> {
    /// Offset at which the address of the marks is written later.
    pub(super) fn marks_offset(&self) -> Option<u64> {
        match self {
            Self::Convention(counted, _) => counted.looks_at_marks().then_some(MARKS_OFFSET),
            Self::Kept(counted) => counted.marks_offset(),
        }
    }

    /// Writes the way out of the counting, and the counting code. Returns the code's label.
    pub(super) fn write(&self, a: &mut CodeAssembler, target: CodeLabel) -> Result<CodeLabel, IcedError> {
        let (mut early, mut out, mut counting) = (a.create_label(), a.create_label(), a.create_label());
        a.set_label(&mut early)?;
        match self {
            Self::Kept(counted) if counted.saves() => {
                counted.write_restoring(a)?;
                a.set_label(&mut out)?;
            }
            _ => out = early,
        }
        a.jmp(qword_ptr(target))?;
        a.db(&[0xcc; COUNTING_BYTES])?;
        a.set_label(&mut counting)?;
        match self {
            Self::Convention(counted, countdown) => counted.write(a, *countdown, out)?,
            Self::Kept(counted) => counted.write(a, early, out)?,
        }
        Ok(counting)
    }
}
