//! Assembly of the entry points by which the program's calls reach the hooks; macros that other
//! modules use to define them. Each entry point passes the arguments on, and after them two words,
//! and jumps to its slot's target. The words are the stack pointer at entry (where the return
//! address lies) and the frame pointer register. When recording has ended, the target is the real
//! function, which ignores the two: a disabled agent costs one indirect jump.
//!
//! All entry points except those of mmap and its variants are jumps, not calls. The hook returns to
//! the program directly, and the caller's frame is the program's.

/// mmap and mremap with recording: their arguments leave no register for the two extra words, so
/// these entry points call where the others jump.
macro_rules! mapping_hooks {
    ($mmap:path, $after_mmap:path; $mremap:path, $before_mremap:path, $after_mremap:path) => {
        #[unsafe(naked)]
        unsafe extern "C" fn mmap_hook() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 40",
                ".cfi_adjust_cfa_offset 40",
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
                "add rsp, 40",
                ".cfi_adjust_cfa_offset -40",
                "ret",
                ".cfi_endproc",
                real = sym $mmap,
                after = sym $after_mmap,
            );
        }

        #[unsafe(naked)]
        unsafe extern "C" fn mremap_hook() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 56",
                ".cfi_adjust_cfa_offset 56",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "lea rsi, [rsp + 56]",
                "call {before}",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "mov rcx, [rsp + 24]",
                "mov r8, [rsp + 32]",
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
                "add rsp, 56",
                ".cfi_adjust_cfa_offset -56",
                "ret",
                ".cfi_endproc",
                real = sym $mremap,
                before = sym $before_mremap,
                after = sym $after_mremap,
            );
        }
    };
}

/// Calls `{start}` in the middle of a call and restores the call's six arguments.
macro_rules! start_keeping_arguments {
    () => {
        "sub rsp, 56; .cfi_adjust_cfa_offset 56; mov [rsp], rdi; mov [rsp + 8], rsi; mov [rsp + 16], rdx;
         mov [rsp + 24], rcx; mov [rsp + 32], r8; mov [rsp + 40], r9; call {start}; mov rdi, [rsp];
         mov rsi, [rsp + 8]; mov rdx, [rsp + 16]; mov rcx, [rsp + 24]; mov r8, [rsp + 32]; mov r9, [rsp + 40];
         add rsp, 56; .cfi_adjust_cfa_offset -56"
    };
}

/// The functions that map memory, and the code that starts the agent at the first call of one.
macro_rules! mapping_entries {
    ($slots:path, $start:path; $($name:ident $first:ident $offset:literal)*) => {$(
        /// Starts the agent, preserving the six arguments, and continues at the slot's new target.
        #[unsafe(naked)]
        unsafe extern "C" fn $first() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                $crate::arch::entries::start_keeping_arguments!(),
                concat!("jmp qword ptr [rip + {slots} + ", $offset, "]"),
                ".cfi_endproc",
                start = sym $start,
                slots = sym $slots,
            );
        }

        /// The C function of this name.
        ///
        /// # Safety
        /// As the C library documents it.
        #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                concat!("jmp qword ptr [rip + {slots} + ", $offset, "]"),
                ".cfi_endproc",
                slots = sym $slots,
            );
        }
    )*};
}

/// mmap by its large-file name.
macro_rules! mmap64_entry {
    ($slots:path) => {
        /// The C function mmap by its large-file name.
        ///
        /// # Safety
        /// As the C library documents it.
        #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn mmap64() {
            core::arch::naked_asm!(".cfi_startproc", "jmp qword ptr [rip + {slots}]", ".cfi_endproc", slots = sym $slots);
        }
    };
}

/// `syscall`, of which the four numbers of `$checked_calls` are checked.
macro_rules! syscall_entry {
    ($real:path, $checked_calls:path, $checked:path, $start:path) => {
        /// The C function of this name. It leaves its seven arguments unchanged, the last of them
        /// on the stack, and jumps on. The exceptions are calls by which programs forbid themselves
        /// something or exec.
        ///
        /// # Safety
        /// As the C library documents it.
        #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn syscall() {
            core::arch::naked_asm!(
                ".cfi_startproc",
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
                "jmp rax",
                ".cfi_endproc",
                seccomp = const $checked_calls[0],
                prctl = const $checked_calls[1],
                execve = const $checked_calls[2],
                execveat = const $checked_calls[3],
                checked = sym $checked,
                real = sym $real,
                first = sym syscall_first,
            );
        }

        /// Slow path of `syscall` before the agent has started: starts it. If the real function is
        /// still unknown (or the start is under way), it makes the system call itself. It does not
        /// set errno, because no C library is known then.
        #[unsafe(naked)]
        unsafe extern "C" fn syscall_first() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                $crate::arch::entries::start_keeping_arguments!(),
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
                "ret",
                ".cfi_endproc",
                start = sym $start,
                real = sym $real,
            );
        }
    };
}

/// `dlopen` and `dlmopen`.
macro_rules! loader_entries {
    ($real:path, $deepbind:path, $before:path, $first:path; $before_dlmopen:path) => {
        /// The C function of this name. It jumps on, because the loader looks up its caller by the
        /// return address.
        ///
        /// # Safety
        /// As the C library documents it.
        #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn dlopen() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov rax, [rip + {real}]",
                "test rax, rax",
                "je 3f",
                "test esi, {deepbind}",
                "jne 2f",
                "jmp rax",
                "2:",
                "sub rsp, 24",
                ".cfi_adjust_cfa_offset 24",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "lea rdi, [rsp + 24]",
                "call {before}",
                "jmp 4f",
                "3:",
                ".cfi_adjust_cfa_offset -24",
                "sub rsp, 24",
                ".cfi_adjust_cfa_offset 24",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov rdi, rsi",
                "lea rsi, [rsp + 24]",
                "call {first}",
                "4:",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "add rsp, 24",
                ".cfi_adjust_cfa_offset -24",
                "test rax, rax",
                "je 5f",
                "jmp rax",
                "5:",
                "ret",
                ".cfi_endproc",
                deepbind = const $deepbind,
                real = sym $real,
                before = sym $before,
                first = sym $first,
            );
        }

        /// The C function of this name.
        ///
        /// # Safety
        /// As the C library documents it.
        #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn dlmopen() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 24",
                ".cfi_adjust_cfa_offset 24",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "lea rdi, [rsp + 24]",
                "call {before}",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "add rsp, 24",
                ".cfi_adjust_cfa_offset -24",
                "test rax, rax",
                "je 2f",
                "jmp rax",
                "2:",
                "ret",
                ".cfi_endproc",
                before = sym $before_dlmopen,
            );
        }
    };
}

/// A function of two words that continues, with them, at the address that `$before` returns.
macro_rules! calloc_watcher {
    ($name:ident, $before:path) => {
        /// The hook of calloc once a library has been loaded whose calls are bound past the agent.
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 24",
                ".cfi_adjust_cfa_offset 24",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "lea rdi, [rsp + 24]",
                "call {before}",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "add rsp, 24",
                ".cfi_adjust_cfa_offset -24",
                "jmp rax",
                ".cfi_endproc",
                before = sym $before,
            );
        }
    };
}

/// Functions of `heapr_heap.h`, each with the number of its arguments. They jump directly to their
/// hooks.
macro_rules! heap_entries {
    ($($name:ident $words:tt $target:path;)*) => {$(
        /// The function of this name in `heapr_heap.h`.
        ///
        /// # Safety
        /// As the header documents it.
        #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                $crate::arch::entries::place_words!($words),
                "jmp {target}",
                ".cfi_endproc",
                target = sym $target,
            );
        }
    )*};
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

/// Functions with a slot, each with the number of its arguments.
macro_rules! slot_entries {
    // The two extra arguments take the registers after the function's own.
    ($slots:path, $index:ident; $($name:ident $words:tt)*) => {$(
        /// The C function of this name.
        ///
        /// # Safety
        /// As the C library documents it.
        #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                $crate::arch::entries::place_words!($words),
                "jmp qword ptr [rip + {slots} + {offset}]",
                ".cfi_endproc",
                slots = sym $slots,
                offset = const $index::$name as usize * 8,
            );
        }
    )*};
}

/// Functions whose hooks get the two extra words by [`hook_entries`]. A target that does not need
/// them thus saves one instruction for each.
macro_rules! jump_entries {
    ($slots:path, $index:ident; $($name:ident)*) => {$(
        /// The C function of this name.
        ///
        /// # Safety
        /// As the C library documents it.
        #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "jmp qword ptr [rip + {slots} + {offset}]",
                ".cfi_endproc",
                slots = sym $slots,
                offset = const $index::$name as usize * 8,
            );
        }
    )*};
}

/// Targets of the slots of [`jump_entries`]: hooks in Rust, with the two extra words.
macro_rules! hook_entries {
    ($($name:ident $words:tt $hook:path;)*) => {$(
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                $crate::arch::entries::place_words!($words),
                "jmp {hook}",
                ".cfi_endproc",
                hook = sym $hook,
            );
        }
    )*};
}

/// exec with the new program's arguments in the call itself: see [`crate::hooks::exec_lists`].
macro_rules! list_entries {
    ($($name:ident $function:ident)*) => {$(
        /// The C function of this name, with the environment completed.
        ///
        /// # Safety
        /// As the C library documents it.
        #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 56",
                ".cfi_adjust_cfa_offset 56",
                "mov [rsp], rsi",
                "mov [rsp + 8], rdx",
                "mov [rsp + 16], rcx",
                "mov [rsp + 24], r8",
                "mov [rsp + 32], r9",
                "mov rsi, rsp",
                "lea rdx, [rsp + 64]",
                "call {function}",
                "add rsp, 56",
                ".cfi_adjust_cfa_offset -56",
                "ret",
                ".cfi_endproc",
                function = sym $function,
            );
        }
    )*};
}

/// operator new, which may throw: the frame between the program and the allocator is assembly with
/// exact unwind information. No Rust code is on the stack while the real function runs.
macro_rules! new_entry {
    ($name:ident, $real:path, $throwing:path, $before:path, $left:path, $after:path) => {
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 40",
                ".cfi_adjust_cfa_offset 40",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "lea rdi, [rsp + 40]",
                "call {before}",
                "mov [rsp + 24], rax",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
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
                "add rsp, 40",
                ".cfi_remember_state",
                ".cfi_adjust_cfa_offset -40",
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
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "add rsp, 40",
                ".cfi_adjust_cfa_offset -40",
                "jmp rcx",
                ".cfi_endproc",
                throwing = sym $throwing,
                before = sym $before,
                left = sym $left,
                after = sym $after,
                real = sym $real,
            );
        }
    };
}

/// A function with any arguments: `$before` receives the first four, then the entry point jumps on.
macro_rules! noting_entry {
    ($name:ident, $real:path, $before:path) => {
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 56",
                ".cfi_adjust_cfa_offset 56",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "mov rdi, rsp",
                "lea rsi, [rsp + 56]",
                "mov rdx, rbp",
                "call {before}",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "mov rcx, [rsp + 24]",
                "mov r8, [rsp + 32]",
                "mov r9, [rsp + 40]",
                "add rsp, 56",
                ".cfi_adjust_cfa_offset -56",
                "jmp qword ptr [rip + {real}]",
                ".cfi_endproc",
                before = sym $before,
                real = sym $real,
            );
        }
    };
}

/// A function of up to four words, with two more for the hook.
macro_rules! word_entry {
    ($name:ident, $hook:path) => {
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc", "mov r8, rsp", "mov r9, rbp", "jmp {}", ".cfi_endproc", sym $hook
            );
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
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                ".rept 16",
                "2:",
                "lea r9, [rip + 0]",
                "mov rcx, rsp",
                "mov r8, rbp",
                "jmp {hook}",
                ".skip 32 - (. - 2b), 0x90",
                ".endr",
                ".cfi_endproc",
                hook = sym $hook,
            );
        }
    };
}

pub(crate) use {
    calloc_watcher, entry_row, heap_entries, hook_entries, jump_entries, list_entries, loader_entries,
    mapping_entries, mapping_hooks, mmap64_entry, new_entry, noting_entry, place_words, slot_entries,
    start_keeping_arguments, syscall_entry, word_entry,
};
