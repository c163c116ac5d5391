//! The C library of a process, and the code of an allocator.

use std::collections::BTreeSet;

use heapr_proc::{Mapping, mappings};

use crate::error::{Error, Result};
use crate::memory::ProcessMemory;
use crate::modules::{Module, Modules};

/// Module that is or contains the C library, and the name of a function of it.
pub(crate) fn c_library<'a>(
    pid: u32,
    memory: &ProcessMemory,
    modules: &'a Modules,
) -> Result<(&'a Module, &'static str)> {
    const VERSION: &str = "gnu_get_libc_version";
    const ALLOCATOR: &str = "malloc";
    if let [program] = modules.list.as_slice()
        && program.statics().is_some()
    {
        return match program.symbol(memory, ALLOCATOR) {
            Some(_) => Ok((program, ALLOCATOR)),
            None => Err(Error::Unsupported {
                pid,
                reason: "it is linked statically, and its file names no malloc (it is stripped, or of Go)",
            }),
        };
    }
    let (libc, _) = modules
        .find(memory, VERSION)
        .ok_or(Error::Unsupported { pid, reason: "its C library is not glibc" })?;
    Ok((libc, VERSION))
}

/// Start and end of the executable mapping that contains a function of a module.
pub(super) fn code_of(
    mappings: &[Mapping],
    module: &Module,
    memory: &ProcessMemory,
    name: &str,
) -> (u64, u64) {
    let symbol = module.symbol(memory, name);
    symbol.and_then(|symbol| code_around(mappings, symbol.address_avma)).unwrap_or_default()
}

pub(super) fn code_around(mappings: &[Mapping], address_avma: u64) -> Option<(u64, u64)> {
    let mapping = mappings::find(mappings, address_avma).filter(|mapping| mapping.is_executable)?;
    // A page that was written to, or made writable for a while, is a separate mapping. The same
    // file may be mapped elsewhere too.
    let same = |other: &&Mapping| other.inode == mapping.inode && other.is_executable && mapping.inode != 0;
    let (mut start, mut end) = (mapping.start_avma, mapping.end_avma);
    for other in mappings.iter().filter(same) {
        if other.start_avma == end {
            end = other.end_avma;
        }
    }
    for other in mappings.iter().rev().filter(same) {
        if other.end_avma == start {
            start = other.start_avma;
        }
    }
    Some((start, end))
}

/// Code of glibc's malloc.o, whose functions call each other; such calls are not the program's. The
/// functions of one object file are contiguous, static ones among the named ones.
pub(super) fn malloc_object(
    memory: &ProcessMemory,
    libc: &Module,
    (code_start, code_end): (u64, u64),
) -> (u64, u64) {
    const NAMES: [&str; 14] = [
        "malloc",
        "free",
        "calloc",
        "realloc",
        "memalign",
        "aligned_alloc",
        "posix_memalign",
        "valloc",
        "pvalloc",
        "malloc_trim",
        "malloc_usable_size",
        "mallinfo",
        "malloc_info",
        "reallocarray",
    ];
    let symbols: BTreeSet<(u64, u64)> = NAMES
        .iter()
        .filter_map(|name| libc.symbol(memory, name))
        .map(|symbol| (symbol.address_avma, symbol.address_avma.saturating_add(symbol.size_bytes)))
        .collect();
    let first = symbols.iter().map(|&(start, _)| start).min().unwrap_or(code_start);
    let end = symbols.iter().map(|&(_, end)| end).max().unwrap_or(code_end);
    let start = libc.end_of_function_before(memory, first).unwrap_or(first);
    (start.clamp(code_start, code_end), end.clamp(code_start, code_end))
}
