//! The exported entry points: each passes its arguments on, and behind them the stack pointer at entry (where the
//! return address lies) and the frame pointer register, and jumps to what its slot holds. When recording has ended
//! that is the real function, which ignores the two: a disabled agent costs one indirect jump.
//!
//! All are jumps, not calls: the hook returns to the program directly, and the caller's frame is its own.

use core::arch::naked_asm;

use crate::hooks::{SLOTS, SlotIndex};

macro_rules! trampolines {
    // The two extra arguments take the registers after the function's own.
    ($($name:ident, $sp:literal, $bp:literal;)*) => {$(
        /// The C function of this name.
        ///
        /// # Safety
        /// As the C library documents it.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                concat!("mov ", $sp, ", rsp"),
                concat!("mov ", $bp, ", rbp"),
                "jmp qword ptr [rip + {slots} + {offset}]",
                ".cfi_endproc",
                slots = sym SLOTS,
                offset = const SlotIndex::$name as usize * 8,
            );
        }
    )*};
}

trampolines! {
    malloc, "rsi", "rdx";
    free, "rsi", "rdx";
    calloc, "rdx", "rcx";
    realloc, "rdx", "rcx";
    reallocarray, "rcx", "r8";
    posix_memalign, "rcx", "r8";
    aligned_alloc, "rdx", "rcx";
    memalign, "rdx", "rcx";
    valloc, "rsi", "rdx";
    pvalloc, "rsi", "rdx";
    cfree, "rsi", "rdx";
    free_sized, "rdx", "rcx";
    free_aligned_sized, "rcx", "r8";
    dlclose, "rsi", "rdx";
}
