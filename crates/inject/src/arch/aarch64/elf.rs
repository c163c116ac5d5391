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
            elf::R_AARCH64_RELATIVE => Self::Relative,
            elf::R_AARCH64_ABS64 => Self::Absolute,
            elf::R_AARCH64_GLOB_DAT | elf::R_AARCH64_JUMP_SLOT => Self::Slot,
            elf::R_AARCH64_TLS_TPREL => Self::ThreadOffset,
            _ => return None,
        })
    }
}

/// True if a thread of a process has, or had, a guarded control stack, in which a borrowed thread's
/// returns would fail. No line of its status tells it, so its mappings are asked, which takes time.
pub(crate) fn has_shadow_stack(pid: u32, _status: &Fields) -> bool {
    /// The processor and the kernel have such stacks (`HWCAP_GCS`).
    const CAPABILITY: u64 = 1 << 32;
    // SAFETY: reads a number that the C library keeps of this process.
    let capabilities = unsafe { libc::getauxval(libc::AT_HWCAP) };
    capabilities & CAPABILITY != 0 && heapr_proc::has_mapping_with_flag(pid, "ss")
}
