//! Parts that the entry points in assembly share: the function around the instructions, its frame,
//! and the places of the call's words.
//!
//! ```text
//! frame!(40)        [ saved words ... ]     rsp is aligned for a call
//! return address    <- rsp at entry
//! ```

/// Defines a function in assembly: its instructions in brackets, then their operands.
macro_rules! assembly_fn {
    ($(#[$attribute:meta])* $visibility:vis $name:ident [$($code:tt)*] $($operands:tt)*) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $visibility unsafe extern "C" fn $name() {
            core::arch::naked_asm!(".cfi_startproc", $($code)*, ".cfi_endproc", $($operands)*);
        }
    };
}

/// Defines a function like [`assembly_fn`], which the agent exports under the C function's name.
macro_rules! exported_fn {
    ($(#[$attribute:meta])* $name:ident [$($code:tt)*] $($operands:tt)*) => {
        $crate::arch::assembly::assembly_fn! {
            /// The C function of this name.
            $(#[$attribute])*
            ///
            /// # Safety
            /// As the C library, or heapr's header, documents it.
            #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
            pub(crate) $name [$($code)*] $($operands)*
        }
    };
}

/// Begins a frame of so many bytes.
macro_rules! frame {
    ($bytes:literal) => {
        concat!("sub rsp, ", $bytes, "; .cfi_adjust_cfa_offset ", $bytes)
    };
}

/// Ends a frame of so many bytes.
macro_rules! end_frame {
    ($bytes:literal) => {
        concat!("add rsp, ", $bytes, "; .cfi_adjust_cfa_offset -", $bytes)
    };
}

/// Saves the call's first words in the frame, from its lowest address on.
macro_rules! save_words {
    (2) => {
        "mov [rsp], rdi; mov [rsp + 8], rsi"
    };
    (3) => {
        "mov [rsp], rdi; mov [rsp + 8], rsi; mov [rsp + 16], rdx"
    };
    (4) => {
        "mov [rsp], rdi; mov [rsp + 8], rsi; mov [rsp + 16], rdx; mov [rsp + 24], rcx"
    };
    (5) => {
        "mov [rsp], rdi; mov [rsp + 8], rsi; mov [rsp + 16], rdx; mov [rsp + 24], rcx; mov [rsp + 32], r8"
    };
    (6) => {
        "mov [rsp], rdi; mov [rsp + 8], rsi; mov [rsp + 16], rdx; mov [rsp + 24], rcx; mov [rsp + 32], r8;
         mov [rsp + 40], r9"
    };
}

/// Restores the call's words that [`save_words`] has saved.
macro_rules! restore_words {
    (2) => {
        "mov rdi, [rsp]; mov rsi, [rsp + 8]"
    };
    (3) => {
        "mov rdi, [rsp]; mov rsi, [rsp + 8]; mov rdx, [rsp + 16]"
    };
    (5) => {
        "mov rdi, [rsp]; mov rsi, [rsp + 8]; mov rdx, [rsp + 16]; mov rcx, [rsp + 24]; mov r8, [rsp + 32]"
    };
    (6) => {
        "mov rdi, [rsp]; mov rsi, [rsp + 8]; mov rdx, [rsp + 16]; mov rcx, [rsp + 24]; mov r8, [rsp + 32];
         mov r9, [rsp + 40]"
    };
}

/// Stores the stack pointer and the frame pointer register in the registers after so many
/// arguments.
macro_rules! place_words {
    (1) => {
        "mov rsi, rsp; mov rdx, rbp"
    };
    (2) => {
        "mov rdx, rsp; mov rcx, rbp"
    };
    (3) => {
        "mov rcx, rsp; mov r8, rbp"
    };
    (4) => {
        "mov r8, rsp; mov r9, rbp"
    };
}

/// Continues at the address in rax; returns 0 if that is the address.
macro_rules! go_to_answer {
    () => {
        "test rax, rax; je 8f; jmp rax; 8: ret"
    };
}

/// Calls `{start}` in the middle of a call and restores the call's six arguments.
macro_rules! start_keeping_arguments {
    () => {
        concat!(
            $crate::arch::assembly::frame!(56),
            "; ",
            $crate::arch::assembly::save_words!(6),
            "; call {start}; ",
            $crate::arch::assembly::restore_words!(6),
            "; ",
            $crate::arch::assembly::end_frame!(56)
        )
    };
}

pub(crate) use {
    assembly_fn, end_frame, exported_fn, frame, go_to_answer, place_words, restore_words, save_words,
    start_keeping_arguments,
};
