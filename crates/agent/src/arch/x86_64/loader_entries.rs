//! Entry points of `dlopen` and its variants; macros that other modules use to define them. See
//! [`super::entries`].

/// `dlopen` and `dlmopen`.
macro_rules! loader_entries {
    ($real:path, $deepbind:path, $before:path, $first:path; $before_dlmopen:path) => {
        $crate::arch::assembly::exported_fn! {
            /// Jumps on, because the loader looks up its caller by the return address.
            dlopen [
                "mov rax, [rip + {real}]",
                "test rax, rax",
                "je 3f",
                "test esi, {deepbind}",
                "jne 2f",
                "jmp rax",
                "2:",
                $crate::arch::assembly::frame!(24),
                $crate::arch::assembly::save_words!(2),
                "lea rdi, [rsp + 24]",
                "call {before}",
                "jmp 4f",
                "3:",
                ".cfi_adjust_cfa_offset -24",
                $crate::arch::assembly::frame!(24),
                $crate::arch::assembly::save_words!(2),
                "mov rdi, rsi",
                "lea rsi, [rsp + 24]",
                "call {first}",
                "4:",
                $crate::arch::assembly::restore_words!(2),
                $crate::arch::assembly::end_frame!(24),
                $crate::arch::assembly::go_to_answer!()
            ]
            deepbind = const $deepbind,
            real = sym $real,
            before = sym $before,
            first = sym $first,
        }

        $crate::arch::assembly::exported_fn! {
            dlmopen [
                $crate::arch::assembly::frame!(24),
                $crate::arch::assembly::save_words!(3),
                "lea rdi, [rsp + 24]",
                "call {before}",
                $crate::arch::assembly::restore_words!(3),
                $crate::arch::assembly::end_frame!(24),
                $crate::arch::assembly::go_to_answer!()
            ]
            before = sym $before_dlmopen,
        }
    };
}

/// A function of two words that continues, with them, at the address that `$before` returns.
macro_rules! calloc_watcher {
    ($name:ident, $before:path) => {
        $crate::arch::assembly::assembly_fn! {
            /// The hook of calloc once a library has been loaded whose calls are bound past the
            /// agent.
            $name [
                $crate::arch::assembly::frame!(24),
                $crate::arch::assembly::save_words!(2),
                "lea rdi, [rsp + 24]",
                "call {before}",
                $crate::arch::assembly::restore_words!(2),
                $crate::arch::assembly::end_frame!(24),
                "jmp rax"
            ]
            before = sym $before,
        }
    };
}

pub(crate) use {calloc_watcher, loader_entries};
