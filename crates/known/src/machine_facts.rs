//! Types of the facts about a processor; see [`crate::machine`].

use crate::thread_descriptor::ThreadDescriptor;

/// Facts about a processor and Linux on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Name as in texts.
    pub name: &'static str,
    /// Name as the kernel tells it (`uname -m`).
    pub kernel_name: &'static str,
    /// Machine number of ELF files.
    pub elf_number: u16,
    /// Exclusive upper bound of the addresses of programs that request no larger ones.
    pub address_limit: u64,
    /// Size in bytes of the red zone: leaf functions' data below the stack pointer.
    pub red_zone_bytes: u64,
    /// Size in bytes of the kernel's stack of a thread.
    pub kernel_stack_bytes: u64,
    /// Name of the kernel's clock source that is the processor's own counter.
    pub counter_clock: &'static str,
    /// Flags in `/proc/cpuinfo` of processors whose time counter has one rate in all power states.
    pub steady_counter_flags: &'static [&'static str],
    /// Registers of a stopped thread.
    pub registers: ThreadRegisters,
    /// Registers in unwind tables.
    pub columns: Columns,
    /// Location of a program's thread-local variables.
    pub thread_locals: ThreadLocalPlace,
    /// Descriptors of threads in glibc.
    pub descriptor: ThreadDescriptor,
}

/// Registers of a thread that may hold an address, in the order in which heapr keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRegisters {
    /// Names of the registers.
    pub names: &'static [&'static str],
    /// Index of each in the kernel's `struct user_regs_struct` (`user_pt_regs`), a list of 8-byte
    /// words. A thread pointer that has a note of its own is the word behind them.
    pub kernel_indices: &'static [usize],
    /// Index of the stack pointer in the lists.
    pub stack_pointer: usize,
    /// Index of the instruction pointer in the lists.
    pub instruction_pointer: usize,
    /// Index of the thread pointer in the lists.
    pub thread_pointer: usize,
    /// Type of the note of a core file with the thread pointer; `None` if it is one of the words.
    pub thread_pointer_note: Option<u32>,
    /// Type of the note of a core file with the vector registers.
    pub vectors_note: u32,
}

/// Numbers of registers in unwind tables (DWARF).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// Index in [`ThreadRegisters`]' lists of each register that unwinding restores, by number.
    pub thread_indices: &'static [usize],
    /// Number of the stack pointer.
    pub stack_pointer: usize,
    /// Number of the return address; before the first step it is the instruction pointer.
    pub return_address: usize,
    /// Numbers of the registers that functions preserve for their callers.
    pub preserved: &'static [usize],
    /// Whether return addresses may be signed, and unwind tables say where
    /// (`DW_CFA_AARCH64_negate_ra_state`).
    pub may_sign_return_addresses: bool,
    /// Code to which signal handlers return, if it has no tables.
    pub signal_return: Option<SignalReturn>,
}

/// Code to which signal handlers return, and the interrupted registers that the kernel has left on
/// the stack (`struct rt_sigframe`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalReturn {
    /// The code's bytes.
    pub code: [u8; 8],
    /// Offset in bytes of the interrupted registers from the stack pointer, each of 8 bytes, by
    /// their numbers in unwind tables.
    pub registers_at: u64,
    /// Offset in bytes of the interrupted address from the stack pointer.
    pub address_at: u64,
}

/// Location of a program's own thread-local variables (Drepper, ELF Handling For Thread-Local
/// Storage, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadLocalPlace {
    /// Directly before the thread pointer (variant II).
    BeforeThreadPointer,
    /// Behind the thread pointer and a head of `head_bytes` (variant I).
    BehindThreadPointer {
        /// Size in bytes of the head, which the alignment of the variables may enlarge.
        head_bytes: u64,
    },
}
