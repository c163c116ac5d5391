//! Light entry: like [`crate::arch::all_registers_entry`], for a function whose callers obey the
//! calling convention. See `convention` in heapr-allocators.
//!
//! ```text
//! the trampoline's frame             see `trampoline_frame`
//! rax, r9, r8, rcx, rdx, rsi, rdi    rsp is aligned below them
//! ```

use super::trampoline_frame::TrampolineFrame;

/// The saved words, from the lowest address on.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LightCall {
    rdi_to_rcx: [usize; 4],
    r8_to_rax: [usize; 3],
    pub(crate) frame: TrampolineFrame,
}

impl LightCall {
    pub(crate) fn arguments(&self) -> &[usize; 4] {
        &self.rdi_to_rcx
    }
}

/// Outcome of a call, in the two registers of a result.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LightAnswer {
    pub(crate) answer: usize,
    /// Address at which the call continues; 0 if it is done.
    pub(crate) goes_on_avma: usize,
}

/// Defines the entry, which lets `$make_call` make the call.
macro_rules! light_entry {
    ($make_call:path) => {
        $crate::arch::trampoline_frame::trampoline_entry! {
            light_entry [
                "push rax; push r9; push r8; push rcx; push rdx; push rsi; push rdi",
                "mov rdi, rsp",
                "call {make_call}",
                "test rdx, rdx",
                "jnz 7f",
                "mov rsp, rbp",
                $crate::arch::trampoline_frame::return_to_program!(),
                "7:",
                $crate::arch::trampoline_frame::replace_frame_by!("rdx"),
                "pop rdi; pop rsi; pop rdx; pop rcx; pop r8; pop r9; pop rax",
                $crate::arch::trampoline_frame::go_on!()
            ]
            make_call = sym $make_call,
        }
    };
}

pub(crate) use light_entry;
