//! Advice on memory that an allocator keeps after it was freed, by allocator.

use heapr_known::allocator_libraries::LIBRARIES;
use heapr_known::glibc;
use heapr_query::file_name;
use heapr_trace::{MemoryAccount, PartKind, ProcessIndex, Trace};

/// Names of allocators, and the call or variable by which each gives back freed memory.
const ADVICE: &[(&str, &str)] = &[
    (
        "jemalloc",
        "jemalloc keeps it: MALLOC_CONF=background_thread:true,dirty_decay_ms:1000 gives free pages back sooner; pages \
         with live blocks stay (redis: activedefrag yes)",
    ),
    (
        "tcmalloc",
        "tcmalloc keeps it: MallocExtension's ReleaseFreeMemory() gives it back, TCMALLOC_RELEASE_RATE=10 sooner",
    ),
    ("mimalloc", "mimalloc keeps it: mi_collect(true) gives it back, MIMALLOC_PURGE_DELAY=0 at once"),
];

/// Advice for glibc's malloc, for memory that is free or that survivors pin.
const OF_GLIBC: &str = "glibc keeps it in its arenas: malloc_trim(0) gives free pages back, MALLOC_ARENA_MAX=2 makes \
                        fewer arenas, MALLOC_MMAP_THRESHOLD_=65536 keeps large blocks out of them";

/// Advice for a process's allocator; `None` if no advice is known for it.
pub(crate) fn advice(trace: &Trace, process: ProcessIndex) -> Option<&'static str> {
    let of_process = trace.mappings().iter().filter(|mapping| mapping.process == process);
    let modules = of_process.filter_map(|mapping| trace.modules().get(mapping.module.0 as usize));
    let files: Vec<&str> = modules.map(|module| file_name(&module.path)).collect();
    let heaps = trace.heap_names().iter().filter(|heap| heap.process == process);
    let accounts = trace.memory_accounts().iter().filter(|account| account.process == process);
    let names: Vec<&str> =
        heaps.map(|heap| heap.name.as_str()).chain(accounts.flat_map(embedded_allocators)).collect();
    advice_of(&files, &names)
}

/// Owners of the parts of an account that recorded allocators had mapped, or that have half of its
/// memory.
fn embedded_allocators(account: &MemoryAccount) -> impl Iterator<Item = &str> {
    let anonymous_bytes = account.anonymous_bytes;
    let owners = account.parts.iter().map(move |part| match &part.kind {
        PartKind::BeforeAttach { owners } => &owners[..],
        PartKind::Mapped { owners, .. } | PartKind::Likely { owners } | PartKind::Stripped { owners, .. }
            if part.bytes.saturating_mul(2) >= anonymous_bytes =>
        {
            &owners[..]
        }
        _ => &[],
    });
    owners.flatten().map(String::as_str)
}

/// Advice for the allocator that is recognised by the names of a process's files, or of its heaps
/// and allocators.
fn advice_of(files: &[&str], names: &[&str]) -> Option<&'static str> {
    let is_there = |name: &str, file: &str| {
        !file.is_empty() && files.iter().any(|own| own.starts_with(file))
            || names.iter().any(|own| own.contains(name))
    };
    match LIBRARIES.iter().find(|library| is_there(library.name, library.file)) {
        Some(library) => ADVICE.iter().find(|(name, _)| *name == library.name).map(|&(_, advice)| advice),
        // The C library of another program of the recording, or musl, has another malloc.
        None => files.iter().any(|file| glibc::is_library(file)).then_some(OF_GLIBC),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLIBC_FILE: &str = "libc.so.6";

    #[test]
    fn the_files_and_heaps_of_a_process_tell_whose_advice_helps() {
        let starts = |files: &[&str], names: &[&str], start: &str| {
            advice_of(files, names).is_some_and(|advice| advice.starts_with(start))
        };
        assert!(starts(&["app", GLIBC_FILE], &[], "glibc"));
        assert!(starts(&["app", "libc-2.31.so"], &[], "glibc"));
        assert!(starts(&["app", "libjemalloc.so.2", GLIBC_FILE], &[], "jemalloc"));
        assert!(starts(&["redis-server", GLIBC_FILE], &["jemalloc"], "jemalloc"));
        assert!(starts(&["app", GLIBC_FILE], &["python"], "glibc"));
    }

    #[test]
    fn allocators_without_advice_do_not_get_that_of_glibc() {
        assert_eq!(advice_of(&["app", "ld-musl-any.so.1"], &[]), None);
        assert_eq!(advice_of(&["app", "libsnmallocshim.so", GLIBC_FILE], &[]), None);
        assert_eq!(advice_of(&["app", "libhoard.so", GLIBC_FILE], &[]), None);
        assert_eq!(advice_of(&["static"], &[]), None);
    }
}
