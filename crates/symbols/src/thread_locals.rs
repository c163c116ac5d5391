//! Thread-local variables of a program, and their distance before each thread's descriptor.

use std::path::Path;

use heapr_known::machine::{self, ThreadLocalPlace};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, SymbolKind};

use crate::data_symbols::DataSymbols;
use crate::mapped_file::map;

/// Thread-local variables of the program itself: the loader places them first, directly before the
/// descriptor.
#[derive(Debug, Clone)]
pub struct ThreadLocals {
    symbols: DataSymbols,
    /// Distance in bytes from their begin to the descriptor.
    offset_bytes: u64,
}

impl ThreadLocals {
    /// Reads the variables; `None` if the program has no thread-local memory or does not exist.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let bytes = map(path)?;
        let object::File::Elf64(file) = object::File::parse(&*bytes).ok()? else { return None };
        let endian = Endianness::Little;
        let machine = machine::of_elf(file.elf_header().e_machine(endian).0)?;
        match machine.thread_locals {
            ThreadLocalPlace::BeforeThreadPointer => {}
            ThreadLocalPlace::BehindThreadPointer { .. } => return None,
        }
        let headers = file.elf_program_headers();
        let segment = headers.iter().find(|it| it.p_type(endian) == object::elf::PT_TLS)?;
        let alignment = segment.p_align(endian).max(1);
        let first = segment.p_vaddr(endian) & alignment.checked_sub(1)?;
        let end = segment.p_memsz(endian).checked_sub(first).unwrap_or(segment.p_memsz(endian));
        let offset_bytes = end.checked_next_multiple_of(alignment)?.checked_add(first)?;
        Some(Self { symbols: DataSymbols::of_kinds(path, &[SymbolKind::Tls]), offset_bytes })
    }

    /// Variable at `before_bytes` before a thread's descriptor, and the offset in it.
    #[must_use]
    pub fn find(&self, before_bytes: u64) -> Option<(String, u64)> {
        self.symbols.find(self.offset_bytes.checked_sub(before_bytes)?)
    }
}
