//! Advice on memory that an allocator keeps after it was freed, by allocator.

use heapr_known::allocator_libraries::LIBRARIES;
use heapr_query::file_name;
use heapr_trace::{ProcessIndex, Trace};

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

/// Advice for the C library's malloc, for memory that is free or that survivors pin.
const OF_GLIBC: &str = "glibc keeps it in its arenas: malloc_trim(0) gives free pages back, MALLOC_ARENA_MAX=2 makes \
                        fewer arenas, MALLOC_MMAP_THRESHOLD_=65536 keeps large blocks out of them";

/// Advice for a process's allocator.
pub(crate) fn advice(trace: &Trace, process: ProcessIndex) -> &'static str {
    let _ = process;
    let has_file =
        |start: &str| trace.modules().iter().any(|module| file_name(&module.path).starts_with(start));
    let has_heap = |part: &str| trace.heap_names().iter().any(|heap| heap.name.contains(part));
    let is_loaded = |name: &str| {
        LIBRARIES
            .iter()
            .any(|library| library.name == name && !library.file.is_empty() && has_file(library.file))
    };
    let known = ADVICE.iter().find(|(name, _)| is_loaded(name) || has_heap(name));
    known.map_or(OF_GLIBC, |&(_, advice)| advice)
}
