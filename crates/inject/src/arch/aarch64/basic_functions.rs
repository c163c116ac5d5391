//! Functions that the agent normally calls in a C library, for programs without a shared one.

use super::NOT_CHANGED;

/// Size in bytes of the code and data from [`basic_functions`].
pub(crate) const BASIC_BYTES: usize = 160;

/// Headers of a program without a loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramHeaders {
    pub(crate) bias: u64,
    pub(crate) headers_avma: u64,
    pub(crate) count: u64,
}

/// Code with its data, and the functions in it, each with its address.
type PlacedCode = (Vec<u8>, Vec<(String, u64)>);

/// Returns the code and data to be placed at `_start_avma`.
///
/// # Errors
/// Always: the code is missing for this processor.
pub(crate) fn basic_functions(_start_avma: u64, program: ProgramHeaders) -> Result<PlacedCode, &'static str> {
    let ProgramHeaders { bias: _, headers_avma: _, count: _ } = program;
    Err(NOT_CHANGED)
}
