//! All-registers entry: saves all registers around a call whose caller may have a value in any of
//! them. See [`crate::hooks::all_registers`].
//!
//! ```text
//! the trampoline's frame             see `trampoline_frame`
//! flags, rax, rcx, rdx, rsi, rdi, r8 to r11
//! (aligned)
//! xmm0 to xmm15
//! ```
//! The agent's code uses no registers other than these and the ones that every function preserves
//! (`cargo xtask check-agent` checks it). The further registers of AVX and AVX-512, up to 2.7 KiB,
//! are therefore not saved. The few functions of the C library that the agent calls may use them:
//! see [`crate::arch::wide_registers`].

use super::trampoline_frame::TrampolineFrame;

/// The saved words, from the lowest address on.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct AllRegistersCall {
    r11_to_r10: [usize; 2],
    r9: usize,
    r8: usize,
    rdi_to_rcx: [usize; 4],
    rax: usize,
    flags: usize,
    pub(crate) frame: TrampolineFrame,
}

impl AllRegistersCall {
    pub(crate) fn arguments(&self) -> &[usize; 4] {
        &self.rdi_to_rcx
    }

    pub(crate) fn set_answer(&mut self, answer: usize) {
        self.rax = answer;
    }
}

/// Restores the registers of [`AllRegistersCall`], at which rsp is.
macro_rules! restore_registers {
    () => {
        "pop r11; pop r10; pop r9; pop r8; pop rdi; pop rsi; pop rdx; pop rcx; pop rax; popfq"
    };
}

/// Defines the entry, which lets `$make_call` make the call.
macro_rules! all_registers_entry {
    ($make_call:path) => {
        $crate::arch::trampoline_frame::trampoline_entry! {
            all_registers_entry [
                "pushfq; push rax; push rcx; push rdx; push rsi; push rdi; push r8; push r9; push r10; push r11",
                "and rsp, -16",
                "sub rsp, 256",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                "movaps [rsp + 16 * \\n], xmm\\n",
                ".endr",
                "lea rdi, [rbp - 88]",
                "call {make_call}",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                "movaps xmm\\n, [rsp + 16 * \\n]",
                ".endr",
                "lea rsp, [rbp - 88]",
                "test rax, rax",
                "jnz 7f",
                $crate::arch::all_registers_entry::restore_registers!(),
                "lea rsp, [rsp + 8]",
                $crate::arch::trampoline_frame::return_to_program!(),
                "7:",
                $crate::arch::trampoline_frame::replace_frame_by!("rax"),
                $crate::arch::all_registers_entry::restore_registers!(),
                $crate::arch::trampoline_frame::go_on!()
            ]
            make_call = sym $make_call,
        }
    };
}

pub(crate) use {all_registers_entry, restore_registers};
