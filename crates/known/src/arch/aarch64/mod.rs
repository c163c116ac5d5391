//! aarch64.

/// Locations of what C libraries keep for a thread.
#[cfg(target_arch = "aarch64")]
pub(crate) mod c_library;

use crate::machine_facts::{Columns, Machine, SignalReturn, ThreadLocalPlace, ThreadRegisters};
use crate::thread_descriptor::{OwnValue, SignatureWord, ThreadDescriptor};

/// Facts about the processor.
pub(crate) const MACHINE: Machine = Machine {
    name: "aarch64",
    kernel_name: "aarch64",
    elf_number: 183,
    address_limit: 1 << 48,
    red_zone_bytes: 0,
    kernel_stack_bytes: 16 << 10,
    counter_clock: "arch_sys_counter",
    // The architecture's counter always has one rate.
    steady_counter_flags: &[],
    registers: ThreadRegisters {
        names: &[
            "x0",
            "x1",
            "x2",
            "x3",
            "x4",
            "x5",
            "x6",
            "x7",
            "x8",
            "x9",
            "x10",
            "x11",
            "x12",
            "x13",
            "x14",
            "x15",
            "x16",
            "x17",
            "x18",
            "x19",
            "x20",
            "x21",
            "x22",
            "x23",
            "x24",
            "x25",
            "x26",
            "x27",
            "x28",
            "x29",
            "x30",
            "sp",
            "pc",
            "thread pointer",
        ],
        kernel_indices: &[
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
            27, 28, 29, 30, 31, 32, 34,
        ],
        stack_pointer: 31,
        instruction_pointer: 32,
        thread_pointer: 33,
        thread_pointer_note: Some(0x401),
        vectors_note: 0x405,
    },
    columns: Columns {
        // x0 to x30, sp, pc
        thread_indices: &[
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
            27, 28, 29, 30, 31, 32,
        ],
        stack_pointer: 31,
        return_address: 30,
        // x19 to x29
        preserved: &[19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29],
        may_sign_return_addresses: true,
        // `mov x8, 139; svc 0` in the kernel's page; `siginfo` (128 bytes), `ucontext` up to its
        // registers (176), the fault's address, x0 to x30, sp, pc.
        signal_return: Some(SignalReturn {
            code: [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4],
            registers_at: 128 + 176 + 8,
            address_at: 128 + 176 + 8 + 32 * 8,
        }),
    },
    thread_locals: ThreadLocalPlace::BehindThreadPointer { head_bytes: 16 },
    descriptor: ThreadDescriptor {
        begins_below: crate::glibc::DESCRIPTOR_BYTES as u64,
        alignment: 16,
        // Offset of a mutex's word from its link in the list of robust mutexes, and the address of
        // the first values of thread keys.
        signature: &[
            SignatureWord { at: 0xe8, value: OwnValue::Constant(0_u64.wrapping_sub(32)) },
            SignatureWord { at: 0x310, value: OwnValue::AddressOf(0x110) },
        ],
        id_at: 0xd0,
        variables_list_at: 0,
        stack_end_above: 1 << 20,
    },
};
