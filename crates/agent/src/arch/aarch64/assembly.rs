//! Parts that the entry points in assembly share: the function around the instructions, its frame,
//! and the places of the call's words.
//!
//! ```text
//! frame!(48)   sp -> [x29] [x30] [ saved words ... ]
//! ```
//! Entry points may change x9 to x17 and the flags, which no call preserves.

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

/// Begins a frame of so many bytes, a multiple of 16; its first two words are x29 and x30.
macro_rules! frame {
    ($bytes:literal) => {
        concat!(
            "stp x29, x30, [sp, -",
            $bytes,
            "]!; .cfi_def_cfa_offset ",
            $bytes,
            "; .cfi_offset 29, -",
            $bytes,
            "; .cfi_offset 30, 8 - ",
            $bytes
        )
    };
}

/// Ends a frame of so many bytes.
macro_rules! end_frame {
    ($bytes:literal) => {
        concat!("ldp x29, x30, [sp], ", $bytes, "; .cfi_def_cfa_offset 0; .cfi_restore 29; .cfi_restore 30")
    };
}

/// Saves the call's first words in the frame, above x29 and x30.
macro_rules! save_words {
    (2) => {
        "stp x0, x1, [sp, 16]"
    };
    (3) => {
        "stp x0, x1, [sp, 16]; str x2, [sp, 32]"
    };
    (5) => {
        "stp x0, x1, [sp, 16]; stp x2, x3, [sp, 32]; str x4, [sp, 48]"
    };
    (8) => {
        "stp x0, x1, [sp, 16]; stp x2, x3, [sp, 32]; stp x4, x5, [sp, 48]; stp x6, x7, [sp, 64]"
    };
}

/// Restores the call's words that [`save_words`] has saved.
macro_rules! restore_words {
    (2) => {
        "ldp x0, x1, [sp, 16]"
    };
    (3) => {
        "ldp x0, x1, [sp, 16]; ldr x2, [sp, 32]"
    };
    (5) => {
        "ldp x0, x1, [sp, 16]; ldp x2, x3, [sp, 32]; ldr x4, [sp, 48]"
    };
    (8) => {
        "ldp x0, x1, [sp, 16]; ldp x2, x3, [sp, 32]; ldp x4, x5, [sp, 48]; ldp x6, x7, [sp, 64]"
    };
}

/// Stores the call's [`super::entry::Entry`] (stack pointer and return address) and the frame
/// pointer register in the registers after so many arguments.
macro_rules! place_words {
    (1) => {
        "mov x1, sp; mov x2, x30; mov x3, x29"
    };
    (2) => {
        "mov x2, sp; mov x3, x30; mov x4, x29"
    };
    (3) => {
        "mov x3, sp; mov x4, x30; mov x5, x29"
    };
    (4) => {
        "mov x4, sp; mov x5, x30; mov x6, x29"
    };
}

/// Loads the word at a symbol, with an offset, into a register.
macro_rules! load_word {
    ($register:literal, $symbol:literal) => {
        concat!(
            "adrp ", $register, ", ", $symbol, "; ldr ", $register, ", [", $register, ", :lo12:", $symbol,
            "]"
        )
    };
}

/// Continues at the address of the word at a symbol.
macro_rules! jump_by_word {
    ($symbol:literal) => {
        concat!($crate::arch::assembly::load_word!("x16", $symbol), "; br x16")
    };
}

/// Continues at the address in x16; returns 0 if that is the address.
macro_rules! go_to_answer {
    () => {
        "cbz x16, 8f; br x16; 8: mov x0, xzr; ret"
    };
}

/// Calls `{start}` in the middle of a call and restores the call's eight arguments.
macro_rules! start_keeping_arguments {
    () => {
        concat!(
            $crate::arch::assembly::frame!(80),
            "; ",
            $crate::arch::assembly::save_words!(8),
            "; bl {start}; ",
            $crate::arch::assembly::restore_words!(8),
            "; ",
            $crate::arch::assembly::end_frame!(80)
        )
    };
}

pub(crate) use {
    assembly_fn, end_frame, exported_fn, frame, go_to_answer, jump_by_word, load_word, place_words,
    restore_words, save_words, start_keeping_arguments,
};
