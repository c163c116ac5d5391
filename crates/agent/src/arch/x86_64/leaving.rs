//! Unwinds frames of code without tables by the instructions at the return address, which undo the
//! frame.

/// Number of bytes of code that are compared.
pub(crate) const CODE_BYTES: usize = 5;

/// Returns the distance from a frame's stack pointer to its caller's, if `add rsp, 8`, `ret` follow
/// the call. CPython's trampolines, with which it shows its functions to `perf`, end like this.
pub(crate) fn frame_bytes(code: [u8; CODE_BYTES]) -> Option<usize> {
    (code == [0x48, 0x83, 0xc4, 0x08, 0xc3]).then_some(16)
}
