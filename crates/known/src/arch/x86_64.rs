//! x86-64.

use core::ops::Range;

use crate::machine_facts::{Columns, Machine, ThreadLocalPlace, ThreadRegisters};

/// Facts about the processor.
pub(crate) const MACHINE: Machine = Machine {
    name: "x86-64",
    kernel_name: "x86_64",
    elf_number: 62,
    address_limit: 1 << 47,
    red_zone_bytes: 128,
    kernel_stack_bytes: 16 << 10,
    steady_counter_flags: &["constant_tsc", "nonstop_tsc"],
    registers: ThreadRegisters {
        names: &[
            "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
            "r14", "r15", "rip", "fs base", "gs base",
        ],
        kernel_indices: &[10, 5, 11, 12, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16, 21, 22],
        stack_pointer: 7,
        thread_pointer: 17,
        vectors_note: 0x202,
    },
    columns: Columns {
        // rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, rip
        thread_indices: &[0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
        stack_pointer: 7,
        return_address: 16,
        // rbx, rbp, r12 to r15
        preserved: &[3, 6, 12, 13, 14, 15],
    },
    thread_locals: ThreadLocalPlace::BeforeThreadPointer,
};

/// Offset of the thread's id (`tid`) in `struct pthread`, which begins at the thread pointer
/// (nptl/descr.h of glibc 2.31 to 2.43).
pub const THREAD_ID_OFFSET: usize = 0x2d0;

/// Offset of the values of thread keys (`specific_1stblock`) in `struct pthread` of glibc 2.2 to
/// 2.43. Each key has two words; the second is the value.
pub const KEY_VALUES_OFFSET: usize = 0x310;

/// Offsets at which `specific_1stblock` is looked for: [`KEY_VALUES_OFFSET`] with room on either
/// side for other builds.
pub const KEY_VALUES_NEAR: Range<usize> = 0x2f0..0x350;

/// Offsets at which a thread's stack (`stackblock`, `stackblock_size`) is looked for in `struct
/// pthread`: after the unwind buffers, before the end. The exact offset differs by version.
pub const STACK_BOUNDS_NEAR: Range<usize> = 0x600..0x8c0;

/// Bytes from the thread pointer up to the end of the thread's stack: the structure, and the room
/// that its alignment leaves.
pub const STACK_END_ABOVE: Range<usize> = 0x8c0..0x2000;

/// Size in bytes of `struct pthread` in musl 1.2, which begins at the thread pointer.
pub const MUSL_DESCRIPTOR_BYTES: u64 = 200;
