//! Reading and setting a stopped thread's registers.

use std::io;

use super::Registers;
use crate::ptrace_request::request;

/// Kind of the registers of floating-point numbers and vectors (XSAVE, standard form).
const NT_X86_XSTATE: usize = 0x202;

/// Whether the kernel shows its own value in a general register at a system call's begin and end,
/// and ignores what a tracer writes there.
pub(crate) const IS_ONE_HIDDEN_AT_CALLS: bool = false;

/// Whether the result of a system call replaces its first argument before a tracer sees it.
pub(crate) const IS_FIRST_ARGUMENT_LOST: bool = false;

/// Reads the general registers. The layout is the 64-bit one for a 32-bit thread too.
pub(crate) fn read_registers(tid: u32) -> io::Result<Registers> {
    let mut registers = Registers::default();
    request(libc::PTRACE_GETREGS, tid, 0, &raw mut registers as usize)?;
    Ok(registers)
}

/// Sets the general registers.
pub(crate) fn write_registers(tid: u32, registers: &Registers) -> io::Result<()> {
    request(libc::PTRACE_SETREGS, tid, 0, std::ptr::from_ref(registers) as usize)
}

/// Reads the floating-point and vector registers in the kernel's layout.
pub(crate) fn extended_state(tid: u32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0_u8; 16 << 10];
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    request(libc::PTRACE_GETREGSET, tid, NT_X86_XSTATE, &raw mut piece as usize)?;
    bytes.truncate(piece.iov_len);
    Ok(bytes)
}

/// Sets the floating-point and vector registers.
pub(crate) fn set_extended_state(tid: u32, bytes: &[u8]) -> io::Result<()> {
    let mut piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    request(libc::PTRACE_SETREGSET, tid, NT_X86_XSTATE, &raw mut piece as usize)
}
