//! Unwinds frames of code without tables by the instructions at the return address, which undo the
//! frame.

/// Number of bytes of code that are compared.
pub(crate) const CODE_BYTES: usize = 8;

/// Returns the distance from a frame's stack pointer to its caller's, if `ldp x29, x30, [sp], 16`,
/// `ret` follow the call. CPython's trampolines, with which it shows its functions to `perf`, end
/// like this.
pub(crate) fn frame_bytes(code: [u8; CODE_BYTES]) -> Option<usize> {
    (code == [0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6]).then_some(16)
}
