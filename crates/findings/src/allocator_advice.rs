//! Advice on memory that an allocator keeps after it was freed, by allocator.

use heapr_query::file_name;
use heapr_trace::{ProcessIndex, Trace};

/// Allocators, by the beginnings of their files' names or by the names of their heaps, and what
/// makes each give back freed memory.
const ADVICE: &[(&str, &str, &str)] = &[
    (
        "libjemalloc",
        "jemalloc",
        "jemalloc keeps it: MALLOC_CONF=background_thread:true,dirty_decay_ms:1000 gives free pages back sooner; pages \
         with live blocks stay (redis: activedefrag yes)",
    ),
    (
        "libtcmalloc",
        "tcmalloc",
        "tcmalloc keeps it: MallocExtension's ReleaseFreeMemory() gives it back, TCMALLOC_RELEASE_RATE=10 sooner",
    ),
    (
        "libmimalloc",
        "mimalloc",
        "mimalloc keeps it: mi_collect(true) gives it back, MIMALLOC_PURGE_DELAY=0 at once",
    ),
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
    let known = ADVICE.iter().find(|(file, heap, _)| has_file(file) || has_heap(heap));
    known.map_or(OF_GLIBC, |&(.., advice)| advice)
}
