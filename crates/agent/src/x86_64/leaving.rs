//! Frames of code without tables whose last instructions stand where the call returns to: what they
//! do to the stack pointer is all there is to know.

/// Bytes that are looked at.
pub(crate) const CODE_BYTES: usize = 5;

/// How far above a frame's stack pointer its caller's lies, if what follows the call is
/// `add rsp, 8`, `ret`: so the trampolines end by which CPython shows its functions to `perf`.
pub(crate) fn frame_bytes(code: [u8; CODE_BYTES]) -> Option<usize> {
    (code == [0x48, 0x83, 0xc4, 0x08, 0xc3]).then_some(16)
}
