//! Facts about this processor's programs: relocations, shadow stacks.

use heapr_proc::Fields;
use object::elf::{self, RelocationType};

/// Kind of a relocation of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelocationKind {
    /// Base address plus addend.
    Relative,
    /// Address of the symbol plus addend.
    Absolute,
    /// Address of the symbol.
    Slot,
    /// Offset of a thread-local variable from the thread pointer.
    ThreadOffset,
}

impl RelocationKind {
    /// Kind with this number in the file; `None` for one that the agent does not use.
    pub(crate) fn of(number: u32) -> Option<Self> {
        Some(match RelocationType(number) {
            elf::R_X86_64_RELATIVE => Self::Relative,
            elf::R_X86_64_64 => Self::Absolute,
            elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => Self::Slot,
            elf::R_X86_64_TPOFF64 => Self::ThreadOffset,
            _ => return None,
        })
    }
}

/// True if a process runs with a shadow stack, in which a borrowed thread's returns would fail.
pub(crate) fn has_shadow_stack(_pid: u32, status: &Fields) -> bool {
    status.words("x86_Thread_features").any(|feature| feature == "shstk")
}
