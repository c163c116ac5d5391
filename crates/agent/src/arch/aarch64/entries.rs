//! Assembly of the entry points by which the program's calls reach the hooks; macros that other
//! modules use to define them. Each entry point passes the arguments on, and after them three
//! words, and jumps to its slot's target. The words are the [`super::entry::Entry`] (stack pointer
//! and return address) and the frame pointer register. When recording has ended, the target is the
//! real function, which ignores the three: a disabled agent costs one indirect jump.
//!
//! All entry points except those of mmap and its variants ([`super::mapping_entries`]) are jumps,
//! not calls. The hook returns to the program directly, and the caller's frame is the program's.

/// Functions of `heapr_heap.h`, each with the number of its arguments. They jump directly to their
/// hooks.
macro_rules! heap_entries {
    ($($name:ident $words:tt $target:path;)*) => {$(
        $crate::arch::assembly::exported_fn! {
            $name [$crate::arch::assembly::place_words!($words), "b {target}"]
            target = sym $target,
        }
    )*};
}

/// Functions with a slot, each with the number of its arguments.
macro_rules! slot_entries {
    // The extra arguments take the registers after the function's own.
    ($slots:path, $index:ident; $($name:ident $words:tt)*) => {$(
        $crate::arch::assembly::exported_fn! {
            $name [
                $crate::arch::assembly::place_words!($words),
                $crate::arch::assembly::jump_by_word!("{slots} + {offset}")
            ]
            slots = sym $slots,
            offset = const $index::$name as usize * 8,
        }
    )*};
}

/// Functions whose hooks get the extra words by [`hook_entries`]. A target that does not need them
/// thus saves one instruction for each.
macro_rules! jump_entries {
    ($slots:path, $index:ident; $($name:ident)*) => {$(
        $crate::arch::assembly::exported_fn! {
            $name [$crate::arch::assembly::jump_by_word!("{slots} + {offset}")]
            slots = sym $slots,
            offset = const $index::$name as usize * 8,
        }
    )*};
}

/// Targets of the slots of [`jump_entries`]: hooks in Rust, with the extra words.
macro_rules! hook_entries {
    ($($name:ident $words:tt $hook:path;)*) => {$(
        $crate::arch::assembly::assembly_fn! {
            pub(super) $name [$crate::arch::assembly::place_words!($words), "b {hook}"]
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
                $crate::arch::assembly::frame!(80),
                "stp x1, x2, [sp, 16]",
                "stp x3, x4, [sp, 32]",
                "stp x5, x6, [sp, 48]",
                "str x7, [sp, 64]",
                "add x1, sp, 16",
                "add x2, sp, 80",
                "bl {function}",
                $crate::arch::assembly::end_frame!(80),
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
                $crate::arch::assembly::frame!(64),
                $crate::arch::assembly::save_words!(3),
                "add x0, sp, 64",
                "mov x1, x30",
                "bl {before}",
                "str x0, [sp, 40]",
                $crate::arch::assembly::restore_words!(3),
                $crate::arch::assembly::load_word!("x16", "{real}"),
                "blr x16",
                "cbz x0, 3f",
                "2:",
                "str x0, [sp, 48]",
                "ldr x1, [sp, 16]",
                "add x2, sp, 64",
                "ldr x3, [sp, 8]",
                "mov x4, x29",
                "ldr x5, [sp, 40]",
                "bl {after}",
                "ldr x0, [sp, 48]",
                ".cfi_remember_state",
                $crate::arch::assembly::end_frame!(64),
                "ret",
                ".cfi_restore_state",
                // The function that was called instead has returned null: this one throws, with no
                // frame of the agent on the stack.
                "3:",
                $crate::arch::assembly::load_word!("x16", "{throwing}"),
                "cbz x16, 2b",
                "ldr x0, [sp, 40]",
                "bl {left}",
                $crate::arch::assembly::load_word!("x16", "{throwing}"),
                $crate::arch::assembly::restore_words!(2),
                $crate::arch::assembly::end_frame!(64),
                "br x16"
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
                $crate::arch::assembly::frame!(96),
                $crate::arch::assembly::save_words!(8),
                "str x8, [sp, 80]",
                "add x0, sp, 16",
                "add x1, sp, 96",
                "mov x2, x30",
                "mov x3, x29",
                "bl {before}",
                $crate::arch::assembly::restore_words!(8),
                "ldr x8, [sp, 80]",
                $crate::arch::assembly::end_frame!(96),
                $crate::arch::assembly::jump_by_word!("{real}")
            ]
            before = sym $before,
            real = sym $real,
        }
    };
}

/// A function of up to four words, with the extra words for the hook.
macro_rules! word_entry {
    ($name:ident, $hook:path) => {
        $crate::arch::assembly::assembly_fn! {
            pub(super) $name [$crate::arch::assembly::place_words!(4), "b {hook}"]
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
                "adr x6, .",
                $crate::arch::assembly::place_words!(3),
                "b {hook}",
                "nop; nop; nop",
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
