//! Frames at which Go's code called C: the call runs on the thread's own stack, and the goroutine's
//! frames are on another one. See the x86-64 folder for the drawing.
//!
//! The code of `runtime.asmcgocall` behind the call is not recognised on aarch64: stacks of C code
//! that Go has called end there.

/// Number of bytes of code that are compared.
pub(crate) const CODE_BYTES: usize = 32;

/// True if the code after a call is that of the function which has called C.
pub(crate) fn comes_back(_code: &[u8; CODE_BYTES]) -> bool {
    false
}
