//! The entry points while a session samples: each counts down and jumps on to the real function. A
//! call that is no sample, and a free of a block on an unmarked page, executes only these
//! instructions of heapr's. Their only store is that of the countdown.
//!
//! ```text
//! malloc and free:   1 + 5    1 + 6    (with the jump by the slot)
//! ```
//! In a process that was attached to, the injector's code does the same before a call comes to the
//! agent.

/// Counts a word plus one down, so that blocks of size 0 are counted, too. The word is an argument
/// by its number, or the product that calloc computes. Jumps to `2` below if the countdown has run
/// out.
macro_rules! count_down {
    (1) => {
        $crate::arch::sampling_entries::count_down!("rdi")
    };
    (2) => {
        $crate::arch::sampling_entries::count_down!("rsi")
    };
    (3) => {
        $crate::arch::sampling_entries::count_down!("rdx")
    };
    ($bytes:literal) => {
        concat!(
            "mov r11, qword ptr [rip + heapr_thread_slot@GOTTPOFF]; stc; sbb qword ptr fs:[r11 + 8], ",
            $bytes,
            "; js 2f"
        )
    };
}

/// Functions that return a block, each with the number of its arguments, and which one is the size.
macro_rules! block_entries {
    ($real:path; $($name:ident $words:tt $size:tt $field:expr, $hook:path;)*) => {$(
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                $crate::arch::sampling_entries::count_down!($size),
                "jmp qword ptr [rip + {real} + {field}]",
                "2:",
                $crate::arch::entries::place_words!($words),
                "jmp {hook}",
                ".cfi_endproc",
                real = sym $real,
                field = const $field,
                hook = sym $hook,
            );
        }
    )*};
}

/// calloc, whose words are multiplied.
macro_rules! calloc_entry {
    ($real:path; $field:expr, $hook:path) => {
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn calloc() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov rax, rdi",
                "mul rsi",
                "jo 2f",
                $crate::arch::sampling_entries::count_down!("rax"),
                "jmp qword ptr [rip + {real} + {field}]",
                "2:",
                $crate::arch::entries::place_words!(2),
                "jmp {hook}",
                ".cfi_endproc",
                real = sym $real,
                field = const $field,
                hook = sym $hook,
            );
        }
    };
}

/// realloc: the old block may be a sample, and the new one.
macro_rules! realloc_entry {
    ($real:path; $marks:path, $field:expr, $hook:path, $candidate:path) => {
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn realloc() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov eax, edi",
                "shr eax, 12",
                "mov rcx, [rip + {marks}]",
                "cmp byte ptr [rcx + rax * 4], 0",
                "jne 3f",
                $crate::arch::sampling_entries::count_down!(2),
                "jmp qword ptr [rip + {real} + {field}]",
                "2:",
                $crate::arch::entries::place_words!(2),
                "jmp {hook}",
                "3:",
                $crate::arch::entries::place_words!(2),
                "jmp {candidate}",
                ".cfi_endproc",
                marks = sym $marks,
                real = sym $real,
                field = const $field,
                hook = sym $hook,
                candidate = sym $candidate,
            );
        }
    };
}

/// free: the address's lower half determines the page's word, whatever the upper half is.
macro_rules! free_entry {
    ($real:path; $marks:path, $field:expr, $hook:path) => {
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn free() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov eax, edi",
                "shr eax, 12",
                "mov rcx, [rip + {marks}]",
                "cmp byte ptr [rcx + rax * 4], 0",
                "jne 2f",
                "jmp qword ptr [rip + {real} + {field}]",
                "2:",
                $crate::arch::entries::place_words!(1),
                "jmp {hook}",
                ".cfi_endproc",
                marks = sym $marks,
                real = sym $real,
                field = const $field,
                hook = sym $hook,
            );
        }
    };
}

pub(crate) use {block_entries, calloc_entry, count_down, free_entry, realloc_entry};
