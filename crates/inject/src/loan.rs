//! Threads that somebody who was killed had borrowed, and that have not come home yet: on a busy
//! machine they wait for a processor for longer than it takes to come again.
//!
//! What such a thread was to do it still does when it runs: unmap, map, protect. Nothing may be
//! built or taken away before.

use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::x86_64::{Registers, is_return_frame};

/// `syscall`, and how long it is.
const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];
/// Longest way from an instruction that counts to the `syscall` before or behind it: `mov rax, 15`.
const CODE_BYTES: usize = 11;
const WORDS: usize = 7;

/// Whether a stopped thread of these registers is at a system call that it was made to do, or on
/// its way back by a frame of ours.
pub(crate) fn is_on_loan(memory: &ProcessMemory, registers: &Registers) -> bool {
    // The frame's first word is taken by the last `ret`.
    let mut bytes = [0; WORDS * 8];
    let start_avma = registers.rsp.wrapping_sub(8);
    if !registers.is_64_bit() || memory.read(start_avma, &mut bytes).is_err() {
        return false;
    }
    let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    if !is_return_frame(&words) && !is_return_frame(&words[1..]) {
        return false;
    }
    // What a frame has left on a stack is no matter elsewhere.
    let mut code = [0; CODE_BYTES];
    let code_avma = registers.rip.wrapping_sub(SYSTEM_CALL.len() as u64);
    memory.read(code_avma, &mut code).is_err() || code.windows(2).any(|pair| pair == SYSTEM_CALL)
}
