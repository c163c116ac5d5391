//! A file in memory, without reading it: the crate's only unsafe code.
#![allow(unsafe_code)]

use std::path::Path;

use memmap2::Mmap;

use crate::elf_facts::open_regular;

/// Maps a regular file.
pub(crate) fn map(path: &Path) -> Option<Mmap> {
    let file = open_regular(path)?;
    // SAFETY: the mapping is private and only read. Who cuts the file meanwhile ends us by SIGBUS,
    // as in every tool that maps debug information; what is written into it is untrusted input
    // anyway.
    unsafe { Mmap::map(&file) }.ok()
}
