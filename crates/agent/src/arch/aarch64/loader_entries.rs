//! Entry points of `dlopen` and its variants; macros that other modules use to define them. See
//! [`super::entries`].

/// `dlopen` and `dlmopen`.
macro_rules! loader_entries {
    ($real:path, $deepbind:path, $before:path, $first:path; $before_dlmopen:path) => {
        $crate::arch::assembly::exported_fn! {
            /// Jumps on, because the loader looks up its caller by the return address.
            dlopen [
                $crate::arch::assembly::load_word!("x16", "{real}"),
                "cbz x16, 3f",
                "tst w1, {deepbind}",
                "b.ne 2f",
                "br x16",
                "2:",
                $crate::arch::assembly::frame!(32),
                $crate::arch::assembly::save_words!(2),
                "add x0, sp, 32",
                "mov x1, x30",
                "bl {before}",
                "b 4f",
                "3:",
                ".cfi_def_cfa_offset 0; .cfi_restore 29; .cfi_restore 30",
                $crate::arch::assembly::frame!(32),
                $crate::arch::assembly::save_words!(2),
                "mov x0, x1",
                "add x1, sp, 32",
                "mov x2, x30",
                "bl {first}",
                "4:",
                "mov x16, x0",
                $crate::arch::assembly::restore_words!(2),
                $crate::arch::assembly::end_frame!(32),
                $crate::arch::assembly::go_to_answer!()
            ]
            deepbind = const $deepbind,
            real = sym $real,
            before = sym $before,
            first = sym $first,
        }

        $crate::arch::assembly::exported_fn! {
            dlmopen [
                $crate::arch::assembly::frame!(48),
                $crate::arch::assembly::save_words!(3),
                "add x0, sp, 48",
                "mov x1, x30",
                "bl {before}",
                "mov x16, x0",
                $crate::arch::assembly::restore_words!(3),
                $crate::arch::assembly::end_frame!(48),
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
                $crate::arch::assembly::frame!(32),
                $crate::arch::assembly::save_words!(2),
                "add x0, sp, 32",
                "mov x1, x30",
                "bl {before}",
                "mov x16, x0",
                $crate::arch::assembly::restore_words!(2),
                $crate::arch::assembly::end_frame!(32),
                "br x16"
            ]
            before = sym $before,
        }
    };
}

pub(crate) use {calloc_watcher, loader_entries};
