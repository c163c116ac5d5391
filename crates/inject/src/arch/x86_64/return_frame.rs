//! Frame that returns a borrowed thread to its own state without the injector.
//!
//! A borrowed thread has foreign registers. If this process were killed meanwhile, the kernel would
//! resume the thread with them. All borrowed work thus ends with a `ret` to the C library's `mov
//! rax, 15; syscall` (rt_sigreturn), with this frame behind. The kernel then restores all of the
//! thread's registers, as after a signal handler.
//!
//! ```text
//! rsp -> address of `mov rax, 15; syscall`       (popped by the last `ret`)
//!        struct ucontext                         registers, signal mask; no alternate stack
//!        XSAVE area, aligned to 64               vector registers, with the two magic numbers
//! ```

use std::arch::x86_64::__cpuid_count;

use super::Registers;

/// Largest size in bytes of the frame: 11 KiB are needed for the largest vector registers (AMX is
/// never part of it).
pub(crate) const FRAME_BYTES_MAX: u64 = 16 << 10;

const UC_FP_XSTATE: u64 = 1;
const UC_SIGCONTEXT_SS: u64 = 2;
const UC_STRICT_RESTORE_SS: u64 = 4;
/// Flags that sigaltstack refuses, so that the alternate stack is unchanged.
const NO_ALTERNATE_STACK: u64 = 0x7fff_0000;
const FP_XSTATE_MAGIC1: u32 = 0x4650_5853;
const FP_XSTATE_MAGIC2: u32 = 0x4650_5845;
const UCONTEXT_BYTES: u64 = 40 + 256 + 8;
/// Size in bytes of the FXSAVE area and the XSAVE header.
const XSAVE_BYTES_MIN: usize = 576;
/// Offset of the kernel's own words in the FXSAVE area.
const SOFTWARE_AT: usize = 464;
/// Features in the frame: x87, SSE, AVX, MPX, AVX-512, PKRU; not AMX, whose state exists only on
/// request.
const FEATURES: u64 = 0x2ff;

/// Bytes of the frame for `rsp_avma` (aligned to 16), the address of its first word.
pub(crate) fn return_frame(
    rsp_avma: u64,
    sigreturn_avma: u64,
    registers: &Registers,
    signal_mask: u64,
    extended_state: &[u8],
) -> Vec<u8> {
    let xsave_avma = (rsp_avma + 8 + UCONTEXT_BYTES).next_multiple_of(64);
    let mut bytes = Vec::new();
    let mut word = |value: u64| bytes.extend_from_slice(&value.to_le_bytes());
    word(sigreturn_avma);
    word(UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS);
    word(0);
    for part in [0, NO_ALTERNATE_STACK, 0] {
        word(part);
    }
    let own = registers;
    for register in [own.r8, own.r9, own.r10, own.r11, own.r12, own.r13, own.r14, own.r15] {
        word(register);
    }
    for register in
        [own.rdi, own.rsi, own.rbp, own.rbx, own.rdx, own.rax, own.rcx, own.rsp, own.rip, own.eflags]
    {
        word(register);
    }
    word((own.cs & 0xffff) | (own.gs & 0xffff) << 16 | (own.fs & 0xffff) << 32 | (own.ss & 0xffff) << 48);
    // err, trapno, oldmask, cr2
    for _ in 0..4 {
        word(0);
    }
    word(xsave_avma);
    for _ in 0..8 {
        word(0);
    }
    word(signal_mask);
    bytes.resize((xsave_avma - rsp_avma) as usize, 0);
    bytes.extend(with_magic_numbers(extended_state));
    bytes
}

/// True if the first words of a stack are those of such a frame. (The kernel's own frames have
/// valid alternate stacks.)
pub(crate) fn is_return_frame(words: &[u64]) -> bool {
    let flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
    words.get(1..6) == Some(&[flags, 0, 0, NO_ALTERNATE_STACK, 0])
}

/// Vector registers in the format of a signal frame.
fn with_magic_numbers(extended_state: &[u8]) -> Vec<u8> {
    let mut state = extended_state.to_vec();
    state.resize(state.len().max(XSAVE_BYTES_MIN), 0);
    // The kernel's own words say which features it has saved.
    let enabled = u64::from_le_bytes(state[SOFTWARE_AT..SOFTWARE_AT + 8].try_into().unwrap_or_default());
    let features = enabled & FEATURES;
    let mut bytes = XSAVE_BYTES_MIN;
    for feature in (2..64_u32).filter(|feature| features >> feature & 1 != 0) {
        let leaf = __cpuid_count(0xd, feature);
        bytes = bytes.max(leaf.eax as usize + leaf.ebx as usize);
    }
    state.resize(bytes, 0);
    let mut put = |at: usize, value: &[u8]| state[at..at + value.len()].copy_from_slice(value);
    put(SOFTWARE_AT, &FP_XSTATE_MAGIC1.to_le_bytes());
    put(SOFTWARE_AT + 4, &(bytes as u32 + 4).to_le_bytes());
    put(SOFTWARE_AT + 8, &features.to_le_bytes());
    put(SOFTWARE_AT + 16, &(bytes as u32).to_le_bytes());
    state.extend_from_slice(&FP_XSTATE_MAGIC2.to_le_bytes());
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_its_parts_where_the_kernel_looks() {
        let registers =
            Registers { rip: 0x1234, rsp: 0x5678, rax: 7, cs: 0x33, ss: 0x2b, ..Default::default() };
        let frame = return_frame(0x7000_0000, 0xabcd, &registers, 0x55, &[0; 2696]);
        let word = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().unwrap());
        assert_eq!(word(0), 0xabcd);
        let words: Vec<u64> = (0..7).map(|number| word(number * 8)).collect();
        assert!(is_return_frame(&words) && !is_return_frame(&words[1..]));
        // ucontext at 8; its mcontext at 40: rax is the 14th register, rsp the 16th, rip the 17th.
        assert_eq!(
            (word(8 + 40 + 13 * 8), word(8 + 40 + 15 * 8), word(8 + 40 + 16 * 8)),
            (7, 0x5678, 0x1234)
        );
        assert_eq!(word(8 + 40 + 18 * 8), 0x002b_0000_0000_0033);
        let fpstate = word(8 + 40 + 23 * 8);
        assert_eq!((fpstate % 64, word(8 + 296)), (0, 0x55));
        let at = (fpstate - 0x7000_0000) as usize + 464;
        assert_eq!(word(at) as u32, FP_XSTATE_MAGIC1);
        assert!(frame.len() < FRAME_BYTES_MAX as usize);
    }
}
