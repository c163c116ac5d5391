//! Light entry: like [`crate::arch::all_registers_entry`], for a function whose callers obey the
//! calling convention. See `convention` in heapr-allocators.
//!
//! ```text
//! the trampoline's frame             see `trampoline_frame`
//! x29, entry's x30
//! x0 to x7
//! ```

use super::trampoline_frame::TrampolineFrame;

/// The saved words, from the lowest address on.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LightCall {
    x0_to_x3: [usize; 4],
    x4_to_x7: [usize; 4],
    pub(crate) frame: TrampolineFrame,
}

impl LightCall {
    pub(crate) fn arguments(&self) -> &[usize; 4] {
        &self.x0_to_x3
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
        $crate::arch::assembly::assembly_fn! {
            /// Entered from a trampoline that has pushed the function's `Kept` and x30.
            pub(crate) light_entry [
                ".cfi_def_cfa_offset 16",
                ".cfi_offset 30, -8",
                "stp x29, x30, [sp, -80]!",
                ".cfi_def_cfa_offset 96",
                ".cfi_offset 29, -32",
                // The frame pointer and the link lie above the arguments.
                "stp x29, x30, [sp, 64]",
                "stp x0, x1, [sp]",
                "stp x2, x3, [sp, 16]",
                "stp x4, x5, [sp, 32]",
                "stp x6, x7, [sp, 48]",
                "mov x0, sp",
                "bl {make_call}",
                "ldr x30, [sp, 88]",
                "mov x16, x1",
                "cbz x16, 7f",
                "ldp x0, x1, [sp]",
                "ldp x2, x3, [sp, 16]",
                "ldp x4, x5, [sp, 32]",
                "ldp x6, x7, [sp, 48]",
                "add sp, sp, 96",
                ".cfi_def_cfa_offset 0",
                "br x16",
                "7:",
                "add sp, sp, 96",
                "ret"
            ]
            make_call = sym $make_call,
        }
    };
}

pub(crate) use light_entry;
