//! First instructions of a function. None is replaced on this processor.

use super::NOT_CHANGED;

/// Size in bytes of the branch that would replace a function's first instruction (`b`).
pub(crate) const JUMP_BYTES: usize = 4;
/// Code of such a branch, or the bytes that it replaces.
pub(crate) type JumpBytes = [u8; JUMP_BYTES];

/// Beginning of a function.
#[derive(Debug, Clone)]
pub(crate) struct Prologue {
    pub(crate) function_avma: u64,
    /// Address of the jump.
    pub(crate) entry_avma: u64,
    /// Address of the first byte behind the instructions that are overwritten.
    pub(crate) rest_avma: u64,
}

/// Address at which a function's first instruction is replaced.
pub(crate) fn entry_of(function_avma: u64, _code: &[u8]) -> u64 {
    function_avma
}

impl Prologue {
    /// Plans for a function whose whole body is `_code`.
    pub(crate) fn plan(function_avma: u64, _code: &[u8], _behind: &[u8]) -> Result<Self, &'static str> {
        let rest_avma = function_avma + JUMP_BYTES as u64;
        Self { function_avma, entry_avma: function_avma, rest_avma }.refused()
    }

    /// Plans like [`Self::plan`], for a function that may begin with calls.
    pub(crate) fn plan_calling(function_avma: u64, code: &[u8], behind: &[u8]) -> Result<Self, &'static str> {
        Self::plan(function_avma, code, behind)
    }

    fn refused(self) -> Result<Self, &'static str> {
        Err(NOT_CHANGED)
    }

    /// True if the overwritten instructions have a call.
    pub(crate) fn calls(&self) -> bool {
        false
    }

    /// True if an address lies within the overwritten instructions, behind the first one.
    pub(crate) fn is_inside(&self, address_avma: u64) -> bool {
        (self.entry_avma + 1..self.rest_avma).contains(&address_avma)
    }
}

/// True if code calls one of the functions. Always true, since no code of this processor is
/// decoded.
pub(crate) fn calls_one_of(_code_avma: u64, _code: &[u8], _functions: &[u64]) -> bool {
    true
}
