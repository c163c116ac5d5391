//! The exported entry points: each passes its arguments on, and behind them the stack pointer at entry (where the
//! return address lies) and the frame pointer register, and jumps to what its slot holds. When recording has ended
//! that is the real function, which ignores the two: a disabled agent costs one indirect jump.
//!
//! All are jumps, not calls: the hook returns to the program directly, and the caller's frame is its own.
#![cfg_attr(
    not(all(feature = "cdylib", not(test))),
    allow(unreachable_pub, reason = "the C library's names are given to them only in the shared object")
)]

use core::arch::naked_asm;

use crate::hooks::apart;
use crate::hooks::mapping_hooks::{self, MAPPING_SLOTS};
use crate::hooks::real::{DLOPEN, MMAP, MREMAP, SYSCALL};
use crate::hooks::{SLOTS, SlotIndex};
use crate::process::sandbox;

type Trampoline = unsafe extern "C" fn();

/// mmap with recording: its six arguments leave no register for ours, so it calls where the others jump.
pub(crate) const MMAP_HOOK: Trampoline = mmap_hook;
/// mremap with recording.
pub(crate) const MREMAP_HOOK: Trampoline = mremap_hook;
/// mmap before the agent has started.
pub(crate) const MMAP_FIRST: Trampoline = mmap_first;
/// mremap before the agent has started.
pub(crate) const MREMAP_FIRST: Trampoline = mremap_first;

#[unsafe(naked)]
unsafe extern "C" fn mmap_hook() {
    naked_asm!(
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
        real = sym MMAP,
        after = sym mapping_hooks::after_mmap,
    );
}

#[unsafe(naked)]
unsafe extern "C" fn mremap_hook() {
    naked_asm!(
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
        real = sym MREMAP,
        before = sym mapping_hooks::before_mremap,
        after = sym mapping_hooks::after_mremap,
    );
}

macro_rules! mapping_trampolines {
    ($($name:ident $first:ident $offset:literal)*) => {$(
        /// Starts the agent, keeping the six arguments, and goes on where the slot then leads.
        #[unsafe(naked)]
        unsafe extern "C" fn $first() {
            naked_asm!(
                ".cfi_startproc",
                "sub rsp, 56",
                ".cfi_adjust_cfa_offset 56",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "call {start}",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "mov rcx, [rsp + 24]",
                "mov r8, [rsp + 32]",
                "mov r9, [rsp + 40]",
                "add rsp, 56",
                ".cfi_adjust_cfa_offset -56",
                concat!("jmp qword ptr [rip + {slots} + ", $offset, "]"),
                ".cfi_endproc",
                start = sym crate::process::start::start_for_mapping,
                slots = sym MAPPING_SLOTS,
            );
        }

        /// The C function of this name.
        ///
        /// # Safety
        /// As the C library documents it.
        #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                concat!("jmp qword ptr [rip + {slots} + ", $offset, "]"),
                ".cfi_endproc",
                slots = sym MAPPING_SLOTS,
            );
        }
    )*};
}

mapping_trampolines! {
    mmap mmap_first "0"
    mremap mremap_first "8"
}

/// The same function under its large-file name.
///
/// # Safety
/// As the C library documents it.
#[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn mmap64() {
    naked_asm!(".cfi_startproc", "jmp qword ptr [rip + {slots}]", ".cfi_endproc", slots = sym MAPPING_SLOTS);
}

/// The C function of this name. Its seven arguments are left alone, the last on the stack: it jumps on, but for the calls by which
/// programs forbid themselves something.
///
/// # Safety
/// As the C library documents it.
#[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn syscall() {
    naked_asm!(
        ".cfi_startproc",
        "cmp rdi, {seccomp}",
        "je {checked}",
        "cmp rdi, {prctl}",
        "je {checked}",
        // The slot's first word is the address.
        "mov rax, [rip + {real}]",
        "test rax, rax",
        "je {first}",
        "jmp rax",
        ".cfi_endproc",
        seccomp = const sandbox::CHECKED_CALLS[0],
        prctl = const sandbox::CHECKED_CALLS[1],
        checked = sym sandbox::checked_syscall,
        real = sym SYSCALL,
        first = sym syscall_first,
    );
}

/// The same before the agent has started: starts it, and makes the call itself if there is no such function all the same (or the start
/// is under way). Without errno, which is nobody's to set then.
#[unsafe(naked)]
unsafe extern "C" fn syscall_first() {
    naked_asm!(
        ".cfi_startproc",
        "sub rsp, 56",
        ".cfi_adjust_cfa_offset 56",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rcx",
        "mov [rsp + 32], r8",
        "mov [rsp + 40], r9",
        "call {start}",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "mov rcx, [rsp + 24]",
        "mov r8, [rsp + 32]",
        "mov r9, [rsp + 40]",
        "add rsp, 56",
        ".cfi_adjust_cfa_offset -56",
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
        start = sym crate::process::start::start_for_call,
        real = sym SYSCALL,
    );
}

/// The C function of this name. The loader looks at who has called it: it jumps on.
///
/// # Safety
/// As the C library documents it.
#[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlopen() {
    naked_asm!(
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
        deepbind = const RTLD_DEEPBIND,
        real = sym DLOPEN,
        before = sym apart::before_dlopen,
        first = sym apart::first_dlopen,
    );
}

/// The mode of dlopen that has a library's calls bound past the agent.
pub(crate) const RTLD_DEEPBIND: u32 = 8;

/// The C function of this name.
///
/// # Safety
/// As the C library documents it.
#[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlmopen() {
    naked_asm!(
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
        before = sym apart::before_dlmopen,
    );
}

macro_rules! heap_trampolines {
    ($($name:ident, $target:path, $sp:literal, $bp:literal;)*) => {$(
        /// The function of this name in `heapr_heap.h`.
        ///
        /// # Safety
        /// As the header documents it.
        #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                concat!("mov ", $sp, ", rsp"),
                concat!("mov ", $bp, ", rbp"),
                "jmp {target}",
                ".cfi_endproc",
                target = sym $target,
            );
        }
    )*};
}

heap_trampolines! {
    heapr_heap_create, crate::hooks::heaps::create, "rsi", "rdx";
    heapr_heap_destroy, crate::hooks::heaps::destroy, "rsi", "rdx";
    heapr_heap_alloc, crate::hooks::heaps::alloc, "rcx", "r8";
    heapr_heap_free, crate::hooks::heaps::free, "rdx", "rcx";
    heapr_heap_resize, crate::hooks::heaps::resize, "r8", "r9";
}

macro_rules! trampolines {
    // The two extra arguments take the registers after the function's own.
    ($($name:ident, $sp:literal, $bp:literal;)*) => {$(
        /// The C function of this name.
        ///
        /// # Safety
        /// As the C library documents it.
        #[cfg_attr(all(feature = "cdylib", not(test)), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
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
    munmap, "rdx", "rcx";
    mprotect, "rcx", "r8";
}
