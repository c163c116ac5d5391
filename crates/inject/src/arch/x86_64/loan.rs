//! Threads that a killed process had borrowed, and that have not resumed their own work yet. On a
//! busy machine they may wait for a processor until the next attach.
//!
//! Such a thread still performs its work when it runs: unmap, map, protect. Nothing may be
//! installed or removed before.

use super::{Registers, is_return_frame};
use crate::memory::{ProcessMemory, TargetMemory as _};

/// Instruction `syscall`.
const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];
/// Longest distance in bytes between the instruction pointer and the `syscall` before or behind it:
/// `mov rax, 15`.
const CODE_BYTES: usize = 11;
const WORDS: usize = 7;

/// True if a stopped thread is at a system call that it was made to perform, or returns by a frame
/// of this crate.
pub(crate) fn is_on_loan(memory: &ProcessMemory, registers: &Registers) -> bool {
    // The last `ret` may have popped the frame's first word.
    let mut bytes = [0; WORDS * 8];
    let start_avma = registers.rsp.wrapping_sub(8);
    if !registers.is_64_bit() || memory.read(start_avma, &mut bytes).is_err() {
        return false;
    }
    let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    if !is_return_frame(&words) && !is_return_frame(&words[1..]) {
        return false;
    }
    // A stale frame on the stack of a thread at other code does not count.
    let mut code = [0; CODE_BYTES];
    let code_avma = registers.rip.wrapping_sub(SYSTEM_CALL.len() as u64);
    memory.read(code_avma, &mut code).is_err() || code.windows(2).any(|pair| pair == SYSTEM_CALL)
}
