//! All-registers entry: saves all registers around a call whose caller may have a value in any of
//! them. See [`crate::hooks::all_registers`].
//!
//! ```text
//! the trampoline's frame             see `trampoline_frame`
//! x29, entry's x30
//! q0 to q31
//! flags, x18 to x0
//! ```
//! The upper parts of SVE's registers are not saved. No compiler keeps values in them across a call
//! to a function that it sees, unless that function is compiled for SVE.

use super::trampoline_frame::TrampolineFrame;

/// The saved words, from the lowest address on.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct AllRegistersCall {
    x0_to_x3: [usize; 4],
    x4_to_x18: [usize; 15],
    flags: usize,
    vectors: [u128; 32],
    pub(crate) frame: TrampolineFrame,
}

impl AllRegistersCall {
    pub(crate) fn arguments(&self) -> &[usize; 4] {
        &self.x0_to_x3
    }

    pub(crate) fn set_answer(&mut self, answer: usize) {
        let [x0, ..] = &mut self.x0_to_x3;
        *x0 = answer;
    }
}

/// Defines the entry, which lets `$make_call` make the call.
macro_rules! all_registers_entry {
    ($make_call:path) => {
        $crate::arch::assembly::assembly_fn! {
            /// Entered from a trampoline that has pushed the function's `Kept` and x30.
            pub(crate) all_registers_entry [
                ".cfi_def_cfa_offset 16",
                ".cfi_offset 30, -8",
                "sub sp, sp, 688",
                ".cfi_def_cfa_offset 704",
                "str x29, [sp, 672]",
                "str x30, [sp, 680]",
                ".cfi_offset 29, -32",
                "stp x0, x1, [sp, 0]",
                "stp x2, x3, [sp, 16]",
                "stp x4, x5, [sp, 32]",
                "stp x6, x7, [sp, 48]",
                "stp x8, x9, [sp, 64]",
                "stp x10, x11, [sp, 80]",
                "stp x12, x13, [sp, 96]",
                "stp x14, x15, [sp, 112]",
                "stp x16, x17, [sp, 128]",
                "mrs x0, nzcv",
                "stp x18, x0, [sp, 144]",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
                "str q\\n, [sp, 160 + 16 * \\n]",
                ".endr",
                "mov x0, sp",
                "bl {make_call}",
                "mov x30, x0",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
                "ldr q\\n, [sp, 160 + 16 * \\n]",
                ".endr",
                "ldr x18, [sp, 144]",
                "ldr x0, [sp, 152]",
                "msr nzcv, x0",
                "ldp x0, x1, [sp, 0]",
                "ldp x2, x3, [sp, 16]",
                "ldp x4, x5, [sp, 32]",
                "ldp x6, x7, [sp, 48]",
                "ldp x8, x9, [sp, 64]",
                "ldp x10, x11, [sp, 80]",
                "ldp x12, x13, [sp, 96]",
                "ldp x14, x15, [sp, 112]",
                "cbz x30, 7f",
                // x16 is the veneers' register, which no caller has a value in.
                "mov x16, x30",
                "ldr x17, [sp, 136]",
                "ldr x30, [sp, 696]",
                "add sp, sp, 704",
                ".cfi_def_cfa_offset 0",
                "br x16",
                "7:",
                "ldp x16, x17, [sp, 128]",
                "ldr x30, [sp, 696]",
                "add sp, sp, 704",
                "ret"
            ]
            make_call = sym $make_call,
        }
    };
}

pub(crate) use all_registers_entry;
