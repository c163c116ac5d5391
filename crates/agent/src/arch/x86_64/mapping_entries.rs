//! Entry points of the functions that map memory, and of `syscall`; macros that other modules use
//! to define them. See [`super::entries`].

/// mmap and mremap with recording: their arguments leave no register for the two extra words, so
/// these entry points call where the others jump.
macro_rules! mapping_hooks {
    ($mmap:path, $after_mmap:path; $mremap:path, $before_mremap:path, $after_mremap:path) => {
        $crate::arch::assembly::assembly_fn! {
            mmap_hook [
                $crate::arch::assembly::frame!(40),
                "mov [rsp], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "call qword ptr [rip + {real}]",
                "mov [rsp + 8], rax",
                "mov rdi, rax",
                "mov rsi, [rsp]",
                "mov r8, [rsp + 16]",
                "mov r9, [rsp + 24]",
                "lea rdx, [rsp + 40]",
                "mov rcx, rbp",
                "call {after}",
                "mov rax, [rsp + 8]",
                $crate::arch::assembly::end_frame!(40),
                "ret"
            ]
            real = sym $mmap,
            after = sym $after_mmap,
        }

        $crate::arch::assembly::assembly_fn! {
            mremap_hook [
                $crate::arch::assembly::frame!(56),
                $crate::arch::assembly::save_words!(5),
                "lea rsi, [rsp + 56]",
                "call {before}",
                $crate::arch::assembly::restore_words!(5),
                "xor eax, eax",
                "call qword ptr [rip + {real}]",
                "mov [rsp + 40], rax",
                "mov rdi, rax",
                "mov rsi, [rsp]",
                "mov rdx, [rsp + 16]",
                "lea rcx, [rsp + 56]",
                "mov r8, rbp",
                "call {after}",
                "mov rax, [rsp + 40]",
                $crate::arch::assembly::end_frame!(56),
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
            /// Starts the agent, preserving the six arguments, and continues at the slot's new
            /// target.
            $first [
                $crate::arch::assembly::start_keeping_arguments!(),
                concat!("jmp qword ptr [rip + {slots} + ", $offset, "]")
            ]
            start = sym $start,
            slots = sym $slots,
        }

        $crate::arch::assembly::exported_fn! {
            $name [concat!("jmp qword ptr [rip + {slots} + ", $offset, "]")]
            slots = sym $slots,
        }
    )*};
}

/// mmap by its large-file name.
macro_rules! mmap64_entry {
    ($slots:path) => {
        $crate::arch::assembly::exported_fn! {
            mmap64 ["jmp qword ptr [rip + {slots}]"]
            slots = sym $slots,
        }
    };
}

/// `syscall`, of which the four numbers of `$checked_calls` are checked.
macro_rules! syscall_entry {
    ($real:path, $checked_calls:path, $checked:path, $start:path) => {
        $crate::arch::assembly::exported_fn! {
            /// Leaves its seven arguments unchanged, the last of them on the stack, and jumps
            /// on. The exceptions are calls by which programs forbid themselves something or exec.
            syscall [
                "cmp rdi, {seccomp}",
                "je {checked}",
                "cmp rdi, {prctl}",
                "je {checked}",
                "cmp rdi, {execve}",
                "je {checked}",
                "cmp rdi, {execveat}",
                "je {checked}",
                // The first word of `$real` is the address.
                "mov rax, [rip + {real}]",
                "test rax, rax",
                "je {first}",
                "jmp rax"
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
                "mov rax, [rip + {real}]",
                "test rax, rax",
                "je 2f",
                "jmp rax",
                "2:",
                "mov rax, rdi",
                "mov rdi, rsi",
                "mov rsi, rdx",
                "mov rdx, rcx",
                "mov r10, r8",
                "mov r8, r9",
                "mov r9, [rsp + 8]",
                "syscall",
                "cmp rax, -4095",
                "jb 3f",
                "mov rax, -1",
                "3:",
                "ret"
            ]
            start = sym $start,
            real = sym $real,
        }
    };
}

pub(crate) use {mapping_entries, mapping_hooks, mmap64_entry, syscall_entry};
