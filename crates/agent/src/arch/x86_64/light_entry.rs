//! Light entry: like [`crate::arch::all_registers_entry`], for a function whose callers obey the
//! calling convention. See `convention` in heapr-allocators.
//!
//! ```text
//! return address                     from the program
//! caller's rbp     <- rbp            pushed by the trampoline, like the next word: a frame with frame pointer
//! the function's Kept
//! rax, r9, r8, rcx, rdx, rsi, rdi    rsp is aligned below them
//! ```

use super::entry::Entry;

/// The saved words, from the lowest address on.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LightCall {
    rdi_to_rcx: [usize; 4],
    r8_to_rax: [usize; 3],
    function: usize,
    bp: usize,
    return_address: usize,
}

impl LightCall {
    /// Returns the address of the function's `Kept`.
    pub(crate) fn function(&self) -> usize {
        self.function
    }

    /// Returns the call's entry.
    pub(crate) fn entry(&self) -> Entry {
        Entry::at(&self.return_address)
    }

    /// Returns the caller's frame pointer register.
    pub(crate) fn bp(&self) -> usize {
        self.bp
    }

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
        /// Entered from a trampoline that has pushed rbp and the function's `Kept`.
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn light_entry() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                ".cfi_def_cfa rbp, 16",
                ".cfi_offset rbp, -16",
                "push rax",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "push rdi",
                "mov rdi, rsp",
                "call {make_call}",
                "test rdx, rdx",
                "jnz 7f",
                "mov rsp, rbp",
                ".cfi_remember_state",
                "pop rbp",
                ".cfi_def_cfa rsp, 8",
                ".cfi_restore rbp",
                "ret",
                ".cfi_restore_state",
                "7:",
                // On to the function itself: its address replaces rbp on the stack, and rbp
                // replaces the Kept.
                "mov rcx, [rbp]",
                "mov [rbp - 8], rcx",
                ".cfi_offset rbp, -24",
                "mov [rbp], rdx",
                "pop rdi",
                "pop rsi",
                "pop rdx",
                "pop rcx",
                "pop r8",
                "pop r9",
                "pop rax",
                "pop rbp",
                ".cfi_def_cfa rsp, 16",
                ".cfi_restore rbp",
                "ret",
                ".cfi_endproc",
                make_call = sym $make_call,
            );
        }
    };
}

pub(crate) use light_entry;
