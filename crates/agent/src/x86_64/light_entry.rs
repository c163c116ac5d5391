//! As [`crate::x86_64::kept_entry`], of a function whose callers keep to the convention: see
//! heapr-allocators' `convention`.
//!
//! ```text
//! return address                     from the program
//! caller's rbp     <- rbp            pushed by the island, as is the next: a frame as with frame pointers
//! the function's Kept
//! rax, r9, r8, rcx, rdx, rsi, rdi    rsp is aligned behind them
//! ```

/// What was saved, from the lowest address on.
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
    /// Address of the function's `Kept`.
    pub(crate) fn function(&self) -> usize {
        self.function
    }

    /// The stack pointer at entry, where the return address lies.
    pub(crate) fn entry_sp(&self) -> *const usize {
        &raw const self.return_address
    }

    /// The caller's frame pointer register.
    pub(crate) fn bp(&self) -> usize {
        self.bp
    }

    pub(crate) fn arguments(&self) -> &[usize; 4] {
        &self.rdi_to_rcx
    }
}

/// What becomes of a call, in the two registers of an answer.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LightAnswer {
    pub(crate) answer: usize,
    /// Where it is to go on; 0: nowhere, it is done.
    pub(crate) goes_on_avma: usize,
}

/// The entry, which has `$make_call` make the call.
macro_rules! light_entry {
    ($make_call:path) => {
        /// Comes from an island with rbp and the function's `Kept` pushed.
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
                // On to the function itself: its address goes where rbp is, and that where the Kept
                // was.
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
