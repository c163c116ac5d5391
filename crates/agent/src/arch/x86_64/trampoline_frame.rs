//! The frame that the trampolines of embedded allocators' functions make before they jump to one of
//! the two entries: [`super::all_registers_entry`] and [`super::light_entry`].
//!
//! ```text
//! return address                     from the program
//! caller's rbp     <- rbp            pushed by the trampoline: a frame with frame pointer
//! the function's Kept                pushed by the trampoline
//! ```

use super::entry::Entry;

/// The frame's words, from the lowest address on.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TrampolineFrame {
    function: usize,
    bp: usize,
    return_address: usize,
}

impl TrampolineFrame {
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
}

/// Returns the function's `Kept` of a call that came through one of the entries. Any other word:
/// the call has been left.
///
/// # Safety
/// 1. The stack at `entry_sp`, the stack pointer at the call's entry, may be read.
pub(crate) unsafe fn function_of_call(entry_sp: usize) -> usize {
    // SAFETY: (1).
    unsafe { *(entry_sp.wrapping_sub(16) as *const usize) }
}

/// Defines an entry to which the trampolines jump: its code in brackets, and its operands.
macro_rules! trampoline_entry {
    ($name:ident [$($code:tt)*] $($operands:tt)*) => {
        $crate::arch::assembly::assembly_fn! {
            /// Entered from a trampoline that has pushed rbp and the function's `Kept`.
            pub(crate) $name [".cfi_def_cfa rbp, 16", ".cfi_offset rbp, -16", $($code)*] $($operands)*
        }
    };
}

/// Return to the program from an entry: rsp is at the saved rbp.
macro_rules! return_to_program {
    () => {
        ".cfi_remember_state; pop rbp; .cfi_def_cfa rsp, 8; .cfi_restore rbp; ret; .cfi_restore_state"
    };
}

/// Prepares to continue at the function itself: its address, in a register, replaces rbp on the
/// stack, and rbp replaces the `Kept`. Uses rcx.
macro_rules! replace_frame_by {
    ($address:literal) => {
        concat!("mov rcx, [rbp]; mov [rbp - 8], rcx; .cfi_offset rbp, -24; mov [rbp], ", $address)
    };
}

/// Continues at the function itself, once all registers are restored and rsp is where the `Kept`
/// was.
macro_rules! go_on {
    () => {
        "pop rbp; .cfi_def_cfa rsp, 16; .cfi_restore rbp; ret"
    };
}

pub(crate) use {go_on, replace_frame_by, return_to_program, trampoline_entry};
