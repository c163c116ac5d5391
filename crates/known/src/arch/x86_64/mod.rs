//! x86-64.

/// Locations of what C libraries keep for a thread.
#[cfg(target_arch = "x86_64")]
pub(crate) mod c_library;

use crate::machine_facts::{Columns, Machine, ThreadLocalPlace, ThreadRegisters};
use crate::thread_descriptor::{OwnValue, SignatureWord, ThreadDescriptor};

/// Facts about the processor.
pub(crate) const MACHINE: Machine = Machine {
    name: "x86-64",
    kernel_name: "x86_64",
    elf_number: 62,
    address_limit: 1 << 47,
    red_zone_bytes: 128,
    kernel_stack_bytes: 16 << 10,
    counter_clock: "tsc",
    steady_counter_flags: &["constant_tsc", "nonstop_tsc"],
    registers: ThreadRegisters {
        names: &[
            "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
            "r14", "r15", "rip", "fs base", "gs base",
        ],
        kernel_indices: &[10, 5, 11, 12, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16, 21, 22],
        stack_pointer: 7,
        instruction_pointer: 16,
        thread_pointer: 17,
        thread_pointer_note: None,
        vectors_note: 0x202,
    },
    columns: Columns {
        // rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, rip
        thread_indices: &[0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
        stack_pointer: 7,
        return_address: 16,
        // rbx, rbp, r12 to r15
        preserved: &[3, 6, 12, 13, 14, 15],
        may_sign_return_addresses: false,
        signal_return: None,
    },
    thread_locals: ThreadLocalPlace::BeforeThreadPointer,
    descriptor: ThreadDescriptor {
        begins_below: 0,
        alignment: 64,
        // `tcb` and `self`
        signature: &[
            SignatureWord { at: 0, value: OwnValue::AddressOf(0) },
            SignatureWord { at: 0x10, value: OwnValue::AddressOf(0) },
        ],
        id_at: 0x2d0,
        variables_list_at: 8,
        stack_end_above: 0x2000,
    },
};
