//! Code that depends on the processor of the file that is read, one file a processor.

mod x86_64;

use object::elf;

/// Size of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// Four bytes.
    Half,
    /// Eight bytes.
    Word,
}

/// Pattern of a decision about the heap profile's rate. Arguments: code, offset in it, address of
/// the code, address of the rate. Returns the address of the variable that decides.
pub(crate) type Decision = fn(&[u8], usize, u64, u64) -> Option<u64>;

/// Patterns in the code of Go's runtime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GoPatterns {
    /// Address of the variable that the instruction at an offset loads. Arguments: size of the
    /// variable, code, offset in it, address of the code.
    pub(crate) load: fn(Width, &[u8], usize, u64) -> Option<u64>,
    /// Decision of present runtimes.
    pub(crate) switch: Decision,
    /// Decision of older runtimes.
    pub(crate) choice: Decision,
}

/// Relocations of a word that gets the address of a symbol, by ELF machine.
pub(crate) const SLOT_RELOCATIONS: [(elf::Machine, elf::RelocationType); 4] = [
    (elf::EM_AARCH64, elf::R_AARCH64_GLOB_DAT),
    (elf::EM_AARCH64, elf::R_AARCH64_JUMP_SLOT),
    (elf::EM_X86_64, elf::R_X86_64_GLOB_DAT),
    (elf::EM_X86_64, elf::R_X86_64_JUMP_SLOT),
];

/// Size in bytes of a direct call.
pub(crate) const CALL_BYTES: u64 = 5;

/// Target of the direct call in code of [`CALL_BYTES`] bytes. Arguments: code, address of the code.
pub(crate) type CallTarget = fn(&[u8], u64) -> Option<u64>;

/// Reads the targets of calls in files with this ELF machine number; `None` if heapr cannot.
pub(crate) fn call_target(machine: u16) -> Option<CallTarget> {
    match elf::Machine(machine) {
        elf::EM_X86_64 => Some(x86_64::call_target),
        _ => None,
    }
}

/// Patterns for files with this ELF machine number; `None` if heapr knows none.
pub(crate) fn go_patterns(machine: u16) -> Option<&'static GoPatterns> {
    match elf::Machine(machine) {
        elf::EM_X86_64 => Some(&x86_64::GO_PATTERNS),
        _ => None,
    }
}
