//! Facts about processors, one table a processor.
//!
//! [`HERE`] is the processor that heapr is built for. Files and core files may be of another one:
//! their readers choose by the file, with [`of_elf`].

use crate::arch::ALL;
pub use crate::arch::HERE;
pub use crate::machine_facts::{Columns, Machine, SignalReturn, ThreadLocalPlace, ThreadRegisters};
pub use crate::thread_descriptor::{OwnValue, SignatureWord, ThreadDescriptor};

/// Size in bytes of the smallest page of all processors. Offsets and addresses of a file's segments
/// are equal modulo this. The kernel's own size is `heapr_proc::page_bytes`.
pub const SMALLEST_PAGE_BYTES: u64 = 4096;

/// Exclusive upper bound of the addresses of programs of all processors, as a core file may be of
/// another one than heapr.
pub const ADDRESS_LIMIT_MAX: u64 = 1 << 48;

/// Facts about the processor with this machine number in ELF files; `None` if heapr knows none.
#[must_use]
pub fn of_elf(number: u16) -> Option<&'static Machine> {
    ALL.iter().copied().find(|machine| machine.elf_number == number)
}

impl Default for &'static Machine {
    /// The processor that heapr is built for.
    fn default() -> Self {
        &HERE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_each_processor_fit_together() {
        for &machine in ALL {
            let Machine { registers, columns, .. } = machine;
            assert_eq!(registers.names.len(), registers.kernel_indices.len(), "{}", machine.name);
            assert!(machine.address_limit <= ADDRESS_LIMIT_MAX);
            assert!(registers.stack_pointer < registers.names.len());
            assert!(registers.thread_pointer < registers.names.len());
            assert!(columns.thread_indices.iter().all(|&index| index < registers.names.len()));
            let of_stack = columns.thread_indices[columns.stack_pointer];
            assert_eq!(of_stack, registers.stack_pointer);
            assert!(columns.return_address < columns.thread_indices.len());
            assert!(columns.preserved.iter().all(|&number| number < columns.thread_indices.len()));
            assert_eq!(of_elf(machine.elf_number), Some(machine));
        }
        assert!(ALL.contains(&&HERE));
        assert_eq!(of_elf(0), None);
    }
}
