//! Reading and setting a stopped thread's registers.

use std::io;

use super::assembly::SVC;
use super::extended::{SCALABLE_BYTES_MAX, VECTORS_BYTES, is_scalable_in_use, scalable_of};
use super::registers::{AroundCall, NO_CALL, Registers};
use crate::ptrace_request::request;

/// Kind of the general registers (`struct user_pt_regs`).
const NT_PRSTATUS: usize = 1;
/// Kind of the registers of floating-point numbers and vectors (`struct user_fpsimd_state`).
const NT_PRFPREG: usize = 2;
/// Kind of the scalable vector registers (SVE): a head, then the registers if they are in use.
const NT_ARM_SVE: usize = 0x405;
/// Kind of the thread pointer.
const NT_ARM_TLS: usize = 0x401;
/// Kind of the number of the system call that the thread is in.
const NT_ARM_SYSTEM_CALL: usize = 0x404;
/// Size in bytes of the registers of a 32-bit program.
const BYTES_32_BIT: usize = 72;

/// Whether the kernel shows its own value in a general register at a system call's begin and end,
/// and ignores what a tracer writes there. The register is x7 (Linux, `report_syscall_exit` of
/// arm64).
pub(crate) const IS_ONE_HIDDEN_AT_CALLS: bool = true;

/// Whether the result of a system call replaces its first argument before a tracer sees it.
pub(crate) const IS_FIRST_ARGUMENT_LOST: bool = true;

/// Reads the general registers.
pub(crate) fn read_registers(tid: u32) -> io::Result<Registers> {
    let mut registers = Registers::default();
    let bytes = get(tid, NT_PRSTATUS, registers.general_bytes())?;
    registers.is_32_bit = bytes == BYTES_32_BIT;
    get(tid, NT_ARM_TLS, &mut registers.thread_pointer)?;
    get(tid, NT_ARM_SYSTEM_CALL, &mut registers.call)?;
    if registers.call == NO_CALL && !registers.is_32_bit {
        let instruction = |avma: u64| word_at(tid, avma) == Some(SVC);
        registers.around_call = if instruction(registers.general.pc) {
            AroundCall::Before
        } else if instruction(registers.general.pc.wrapping_sub(4)) {
            AroundCall::Behind
        } else {
            AroundCall::No
        };
    }
    Ok(registers)
}

/// Instruction at an address of a stopped thread.
fn word_at(tid: u32, avma: u64) -> Option<u32> {
    // The kernel reads whole words, which may begin at any address of one page.
    let mut word = 0_u64;
    request(libc::PTRACE_PEEKDATA, tid, (avma & !7) as usize, &raw mut word as usize).ok()?;
    Some((word >> (8 * (avma & 4))) as u32)
}

/// Sets the general registers, and the number of the system call.
pub(crate) fn write_registers(tid: u32, registers: &Registers) -> io::Result<()> {
    set(tid, NT_PRSTATUS, &registers.general)?;
    set(tid, NT_ARM_SYSTEM_CALL, &registers.call)
}

/// Reads the floating-point and vector registers in the kernel's layout, and behind them the
/// scalable ones, if the thread uses them ([`super::extended`]). A system call makes the kernel
/// forget all but the first 16 bytes of each of these.
pub(crate) fn extended_state(tid: u32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0_u8; VECTORS_BYTES];
    let count = get_bytes(tid, NT_PRFPREG, &mut bytes)?;
    bytes.truncate(count);
    if count == VECTORS_BYTES {
        let mut scalable = vec![0_u8; SCALABLE_BYTES_MAX];
        // Processors without these registers, and kernels that do not know them, refuse it.
        let count = get_bytes(tid, NT_ARM_SVE, &mut scalable).unwrap_or(0);
        scalable.truncate(count);
        if is_scalable_in_use(&scalable) {
            bytes.extend(scalable);
        }
    }
    Ok(bytes)
}

/// Sets the floating-point and vector registers.
pub(crate) fn set_extended_state(tid: u32, bytes: &[u8]) -> io::Result<()> {
    // The scalable registers' first bytes are the others.
    let (kind, bytes) = match scalable_of(bytes) {
        Some(scalable) => (NT_ARM_SVE, scalable),
        None => (NT_PRFPREG, bytes),
    };
    let mut piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    request(libc::PTRACE_SETREGSET, tid, kind, &raw mut piece as usize)
}

/// Reads a set of registers into bytes; returns its size.
fn get_bytes(tid: u32, kind: usize, into: &mut [u8]) -> io::Result<usize> {
    let mut piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    request(libc::PTRACE_GETREGSET, tid, kind, &raw mut piece as usize)?;
    Ok(piece.iov_len.min(into.len()))
}

/// Reads a set of registers into a value of plain words; returns its size in bytes.
fn get<T>(tid: u32, kind: usize, into: &mut T) -> io::Result<usize> {
    let mut piece = libc::iovec { iov_base: std::ptr::from_mut(into).cast(), iov_len: size_of::<T>() };
    request(libc::PTRACE_GETREGSET, tid, kind, &raw mut piece as usize)?;
    Ok(piece.iov_len)
}

/// Sets a set of registers to a value of plain words.
fn set<T>(tid: u32, kind: usize, from: &T) -> io::Result<()> {
    let base = std::ptr::from_ref(from).cast_mut().cast();
    let mut piece = libc::iovec { iov_base: base, iov_len: size_of::<T>() };
    request(libc::PTRACE_SETREGSET, tid, kind, &raw mut piece as usize)
}
