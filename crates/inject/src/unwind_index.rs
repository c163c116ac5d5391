//! Unwind tables of a module in the target's memory.
//!
//! Files are not read, because the file at a module's path may be another build by this time.
//! Untrusted: all lengths are bounded.

use object::elf::{PT_GNU_EH_FRAME, PT_LOAD};
use object::{LittleEndian as LE, read::elf::ProgramHeader as _};

use heapr_known::machine::HERE;
use heapr_unwind::UnwindRule;

use crate::elf_in_memory::program_headers;
use crate::memory::TargetMemory;

/// Largest index in bytes that is read: some million functions with 8 bytes each.
const INDEX_BYTES_MAX: u64 = 64 << 20;

/// Index of a module's unwind tables.
#[derive(Debug)]
pub(crate) struct UnwindIndex {
    avma: u64,
    bytes: Vec<u8>,
}

impl UnwindIndex {
    /// Reads the index of the module whose file begins at `header_avma`.
    pub(crate) fn of_module(memory: &impl TargetMemory, header_avma: u64) -> Option<Self> {
        let headers = program_headers(memory, header_avma)?;
        let of_kind = |kind| headers.iter().filter(move |header| header.p_type(LE) == kind);
        let first = of_kind(PT_LOAD).find(|header| header.p_offset(LE) == 0)?;
        let bias = header_avma.wrapping_sub(first.p_vaddr(LE));
        let index = of_kind(PT_GNU_EH_FRAME).next()?;
        let avma = bias.wrapping_add(index.p_vaddr(LE));
        let bytes = index.p_memsz(LE).min(INDEX_BYTES_MAX);
        Some(Self { avma, bytes: memory.read_vec(avma, usize::try_from(bytes).ok()?).ok()? })
    }

    /// Rule at an address; `None` if the tables have no entry for it.
    pub(crate) fn rule(&self, memory: &impl TargetMemory, avma: u64) -> Option<UnwindRule> {
        let index = heapr_unwind::UnwindIndex { bytes: &self.bytes, address: self.avma };
        let bytes_at = |at: u64, count: usize| memory.read_vec(at, count).ok();
        UnwindRule::of_entry(&HERE.columns, &bytes_at, index.entry_address(avma)?, avma)
    }
}
