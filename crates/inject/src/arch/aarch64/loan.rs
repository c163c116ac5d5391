//! Threads that a killed process had borrowed, and that have not resumed their own work yet. On a
//! busy machine they may wait for a processor until the next attach.

use super::return_frame::FRAME_WORDS;
use super::{Registers, is_return_frame};
use crate::memory::{ProcessMemory, TargetMemory as _};

/// Instruction `svc 0`.
const SYSTEM_CALL: [u8; 4] = [0x01, 0x00, 0x00, 0xd4];
/// Longest distance in bytes between the instruction pointer and the `svc` before or behind it.
const CODE_BYTES: usize = 12;

/// True if a stopped thread is at a system call that it was made to perform, or returns by a frame
/// of this crate.
pub(crate) fn is_on_loan(memory: &ProcessMemory, registers: &Registers) -> bool {
    let mut bytes = [0; FRAME_WORDS * 8];
    if !registers.is_64_bit() || memory.read(registers.sp(), &mut bytes).is_err() {
        return false;
    }
    let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    if !is_return_frame(&words) {
        return false;
    }
    // A stale frame on the stack of a thread at other code does not count.
    let mut code = [0; CODE_BYTES];
    let code_avma = registers.pc().wrapping_sub(SYSTEM_CALL.len() as u64);
    memory.read(code_avma, &mut code).is_err() || code.as_chunks::<4>().0.contains(&SYSTEM_CALL)
}
