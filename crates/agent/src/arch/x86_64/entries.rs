//! Assembly of the entry points by which the program's calls reach the hooks; macros that other
//! modules use to define them. Each entry point passes the arguments on, and after them two words,
//! and jumps to its slot's target. The words are the stack pointer at entry (where the return
//! address lies) and the frame pointer register. When recording has ended, the target is the real
//! function, which ignores the two: a disabled agent costs one indirect jump.
//!
//! All entry points except those of mmap and its variants ([`super::mapping_entries`]) are jumps,
//! not calls. The hook returns to the program directly, and the caller's frame is the program's.

/// Functions of `heapr_heap.h`, each with the number of its arguments. They jump directly to their
/// hooks.
macro_rules! heap_entries {
    ($($name:ident $words:tt $target:path;)*) => {$(
        $crate::arch::assembly::exported_fn! {
            $name [$crate::arch::assembly::place_words!($words), "jmp {target}"]
            target = sym $target,
        }
    )*};
}

/// Functions with a slot, each with the number of its arguments.
macro_rules! slot_entries {
    // The two extra arguments take the registers after the function's own.
    ($slots:path, $index:ident; $($name:ident $words:tt)*) => {$(
        $crate::arch::assembly::exported_fn! {
            $name [
                $crate::arch::assembly::place_words!($words),
                "jmp qword ptr [rip + {slots} + {offset}]"
            ]
            slots = sym $slots,
            offset = const $index::$name as usize * 8,
        }
    )*};
}

/// Functions whose hooks get the two extra words by [`hook_entries`]. A target that does not need
/// them thus saves one instruction for each.
macro_rules! jump_entries {
    ($slots:path, $index:ident; $($name:ident)*) => {$(
        $crate::arch::assembly::exported_fn! {
            $name ["jmp qword ptr [rip + {slots} + {offset}]"]
            slots = sym $slots,
            offset = const $index::$name as usize * 8,
        }
    )*};
}

/// Targets of the slots of [`jump_entries`]: hooks in Rust, with the two extra words.
macro_rules! hook_entries {
    ($($name:ident $words:tt $hook:path;)*) => {$(
        $crate::arch::assembly::assembly_fn! {
            pub(super) $name [$crate::arch::assembly::place_words!($words), "jmp {hook}"]
            hook = sym $hook,
        }
    )*};
}

/// exec with the new program's arguments in the call itself: see [`crate::hooks::exec_lists`].
macro_rules! list_entries {
    ($($name:ident $function:ident)*) => {$(
        $crate::arch::assembly::exported_fn! {
            /// The environment of the new program is completed.
            $name [
                $crate::arch::assembly::frame!(56),
                "mov [rsp], rsi",
                "mov [rsp + 8], rdx",
                "mov [rsp + 16], rcx",
                "mov [rsp + 24], r8",
                "mov [rsp + 32], r9",
                "mov rsi, rsp",
                "lea rdx, [rsp + 64]",
                "call {function}",
                $crate::arch::assembly::end_frame!(56),
                "ret"
            ]
            function = sym $function,
        }
    )*};
}

/// operator new, which may throw: the frame between the program and the allocator is assembly with
/// exact unwind information. No Rust code is on the stack while the real function runs.
macro_rules! new_entry {
    ($name:ident, $real:path, $throwing:path, $before:path, $left:path, $after:path) => {
        $crate::arch::assembly::assembly_fn! {
            pub(super) $name [
                $crate::arch::assembly::frame!(40),
                $crate::arch::assembly::save_words!(3),
                "lea rdi, [rsp + 40]",
                "call {before}",
                "mov [rsp + 24], rax",
                $crate::arch::assembly::restore_words!(3),
                "call qword ptr [rip + {real}]",
                "test rax, rax",
                "jz 3f",
                "2:",
                "mov [rsp + 16], rax",
                "mov rdi, rax",
                "mov rsi, [rsp]",
                "lea rdx, [rsp + 40]",
                "mov rcx, rbp",
                "mov r8, [rsp + 24]",
                "call {after}",
                "mov rax, [rsp + 16]",
                ".cfi_remember_state",
                $crate::arch::assembly::end_frame!(40),
                "ret",
                ".cfi_restore_state",
                // The function that was called instead has returned null: this one throws, with no
                // frame of the agent on the stack.
                "3:",
                "mov rcx, [rip + {throwing}]",
                "test rcx, rcx",
                "jz 2b",
                "mov rdi, [rsp + 24]",
                "call {left}",
                "mov rcx, [rip + {throwing}]",
                $crate::arch::assembly::restore_words!(2),
                $crate::arch::assembly::end_frame!(40),
                "jmp rcx"
            ]
            throwing = sym $throwing,
            before = sym $before,
            left = sym $left,
            after = sym $after,
            real = sym $real,
        }
    };
}

/// A function with any arguments: `$before` receives the first four, then the entry point jumps on.
macro_rules! noting_entry {
    ($name:ident, $real:path, $before:path) => {
        $crate::arch::assembly::assembly_fn! {
            pub(super) $name [
                $crate::arch::assembly::frame!(56),
                $crate::arch::assembly::save_words!(6),
                "mov rdi, rsp",
                "lea rsi, [rsp + 56]",
                "mov rdx, rbp",
                "call {before}",
                $crate::arch::assembly::restore_words!(6),
                $crate::arch::assembly::end_frame!(56),
                "jmp qword ptr [rip + {real}]"
            ]
            before = sym $before,
            real = sym $real,
        }
    };
}

/// A function of up to four words, with two more for the hook.
macro_rules! word_entry {
    ($name:ident, $hook:path) => {
        $crate::arch::assembly::assembly_fn! {
            pub(super) $name [$crate::arch::assembly::place_words!(4), "jmp {hook}"]
            hook = sym $hook,
        }
    };
}

/// Number of entry points of one function in a row; the assembly below has the same number.
pub(crate) const ROW_LENGTH: usize = 16;
/// Bytes from one entry point to the next.
pub(crate) const ROW_BYTES: usize = 32;

/// Row of entry points, each of which passes its own address, after up to three words.
macro_rules! entry_row {
    ($name:ident, $hook:path) => {
        $crate::arch::assembly::assembly_fn! {
            pub(super) $name [
                ".rept 16",
                "2:",
                "lea r9, [rip + 0]",
                $crate::arch::assembly::place_words!(3),
                "jmp {hook}",
                ".skip 32 - (. - 2b), 0x90",
                ".endr"
            ]
            hook = sym $hook,
        }
    };
}

pub(crate) use {
    entry_row, heap_entries, hook_entries, jump_entries, list_entries, new_entry, noting_entry, slot_entries,
    word_entry,
};
