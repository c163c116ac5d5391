// Prints tcmalloc's own figures (MallocExtension), for comparison with a reading from outside.
// needs: gperftools/malloc_extension_c.h libtcmalloc_minimal.so
// build: -ltcmalloc_minimal -pthread
#include <gperftools/malloc_extension_c.h>

#include "mixed_blocks.h"

static void figure(const char *kind, const char *name) {
    size_t bytes = 0;
    if (!MallocExtension_GetNumericProperty(name, &bytes)) exit(99);
    printf("%s %zu\n", kind, bytes);
}

static void print_figures(void) {
    figure("allocated", "generic.current_allocated_bytes");
    figure("heap", "generic.heap_size");
    figure("page_heap_free", "tcmalloc.pageheap_free_bytes");
    figure("page_heap_unmapped", "tcmalloc.pageheap_unmapped_bytes");
    figure("caches", "tcmalloc.current_total_thread_cache_bytes");
    figure("central", "tcmalloc.central_cache_free_bytes");
    figure("transfer", "tcmalloc.transfer_cache_free_bytes");
}
