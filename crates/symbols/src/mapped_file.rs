//! Memory mapping of files: the crate's only unsafe code.
#![allow(unsafe_code)]

use std::path::Path;

use memmap2::Mmap;

use crate::elf_facts::open_regular;

/// Maps a regular file.
pub(crate) fn map(path: &Path) -> Option<Mmap> {
    let file = open_regular(path)?;
    // SAFETY: the mapping is private and only read. Truncating the file meanwhile ends the process
    // by SIGBUS, as in every tool that maps debug information. Changed content is untrusted input
    // anyway.
    unsafe { Mmap::map(&file) }.ok()
}
