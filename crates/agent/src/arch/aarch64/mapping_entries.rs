//! Entry points of the functions that map memory, and of `syscall`; macros that other modules use
//! to define them. See [`super::entries`].

/// mmap and mremap with recording: the entry points call where the others jump, as the hooks need
/// the results.
macro_rules! mapping_hooks {
    ($mmap:path, $after_mmap:path; $mremap:path, $before_mremap:path, $after_mremap:path) => {
        $crate::arch::assembly::assembly_fn! {
            mmap_hook [
                $crate::arch::assembly::frame!(48),
                "str x1, [sp, 16]",
                "stp x2, x3, [sp, 32]",
                $crate::arch::assembly::load_word!("x16", "{real}"),
                "blr x16",
                "str x0, [sp, 24]",
                "ldr x1, [sp, 16]",
                "add x2, sp, 48",
                "ldr x3, [sp, 8]",
                "mov x4, x29",
                "ldp x5, x6, [sp, 32]",
                "bl {after}",
                "ldr x0, [sp, 24]",
                $crate::arch::assembly::end_frame!(48),
                "ret"
            ]
            real = sym $mmap,
            after = sym $after_mmap,
        }

        $crate::arch::assembly::assembly_fn! {
            mremap_hook [
                $crate::arch::assembly::frame!(64),
                $crate::arch::assembly::save_words!(5),
                "add x1, sp, 64",
                "mov x2, x30",
                "bl {before}",
                $crate::arch::assembly::restore_words!(5),
                $crate::arch::assembly::load_word!("x16", "{real}"),
                "blr x16",
                "str x0, [sp, 56]",
                "ldr x1, [sp, 16]",
                "ldr x2, [sp, 32]",
                "add x3, sp, 64",
                "ldr x4, [sp, 8]",
                "mov x5, x29",
                "bl {after}",
                "ldr x0, [sp, 56]",
                $crate::arch::assembly::end_frame!(64),
                "ret"
            ]
            real = sym $mremap,
            before = sym $before_mremap,
            after = sym $after_mremap,
        }
    };
}

/// The functions that map memory, and the code that starts the agent at the first call of one.
macro_rules! mapping_entries {
    ($slots:path, $start:path; $($name:ident $first:ident $offset:literal)*) => {$(
        $crate::arch::assembly::assembly_fn! {
            /// Starts the agent, preserving the arguments, and continues at the slot's new target.
            $first [
                $crate::arch::assembly::start_keeping_arguments!(),
                concat!(
                    "adrp x16, {slots} + ", $offset, "; ldr x16, [x16, :lo12:{slots} + ", $offset,
                    "]; br x16"
                )
            ]
            start = sym $start,
            slots = sym $slots,
        }

        $crate::arch::assembly::exported_fn! {
            $name [
                concat!(
                    "adrp x16, {slots} + ", $offset, "; ldr x16, [x16, :lo12:{slots} + ", $offset,
                    "]; br x16"
                )
            ]
            slots = sym $slots,
        }
    )*};
}

/// mmap by its large-file name.
macro_rules! mmap64_entry {
    ($slots:path) => {
        $crate::arch::assembly::exported_fn! {
            mmap64 [$crate::arch::assembly::jump_by_word!("{slots}")]
            slots = sym $slots,
        }
    };
}

/// `syscall`, of which the four numbers of `$checked_calls` are checked.
macro_rules! syscall_entry {
    ($real:path, $checked_calls:path, $checked:path, $start:path) => {
        $crate::arch::assembly::exported_fn! {
            /// Leaves its seven arguments unchanged and jumps on. The exceptions are calls by which
            /// programs forbid themselves something or exec.
            syscall [
                "cmp x0, {seccomp}",
                "b.eq 2f",
                "cmp x0, {prctl}",
                "b.eq 2f",
                "cmp x0, {execve}",
                "b.eq 2f",
                "cmp x0, {execveat}",
                "b.eq 2f",
                // The first word of `$real` is the address.
                $crate::arch::assembly::load_word!("x16", "{real}"),
                "cbz x16, 3f",
                "br x16",
                "2:",
                "b {checked}",
                "3:",
                "b {first}"
            ]
            seccomp = const $checked_calls[0],
            prctl = const $checked_calls[1],
            execve = const $checked_calls[2],
            execveat = const $checked_calls[3],
            checked = sym $checked,
            real = sym $real,
            first = sym syscall_first,
        }

        $crate::arch::assembly::assembly_fn! {
            /// Slow path of `syscall` before the agent has started: starts it. If the real function
            /// is still unknown (or the start is under way), it makes the system call itself. It
            /// does not set errno, because no C library is known then.
            syscall_first [
                $crate::arch::assembly::start_keeping_arguments!(),
                $crate::arch::assembly::load_word!("x16", "{real}"),
                "cbz x16, 2f",
                "br x16",
                "2:",
                "mov x8, x0",
                "mov x0, x1",
                "mov x1, x2",
                "mov x2, x3",
                "mov x3, x4",
                "mov x4, x5",
                "mov x5, x6",
                "svc 0",
                "cmn x0, 4095",
                "b.lo 3f",
                "mov x0, -1",
                "3:",
                "ret"
            ]
            start = sym $start,
            real = sym $real,
        }
    };
}

pub(crate) use {mapping_entries, mapping_hooks, mmap64_entry, syscall_entry};
