// Heaps of mimalloc: a destroyed heap's blocks end with it, a deleted heap's blocks stay.
// needs: mimalloc.h libmimalloc.so
// build: -lmimalloc
// expect: frame=victim_destroyed allocs=600 outstanding=0
// expect: frame=victim_deleted allocs=50 alloc_bytes=5350 outstanding=50
// expect: frame=victim_freed allocs=50 alloc_bytes=5450 outstanding=0
// expect: frame=victim_moved_out allocs=100 outstanding=50
// expect: frame=victim_reused allocs=100 outstanding=50
// expect-unmatched: 0
#include <mimalloc.h>

#include "victim.h"

VICTIM static void victim_destroyed(mi_heap_t *heap) {
    for (int i = 0; i < 6; i++)
        MUST(mi_heap_malloc(heap, 101 + (size_t)i));
    MUST(mi_heap_zalloc(heap, 5000) && mi_heap_calloc(heap, 3, 41) && mi_heap_malloc_aligned(heap, 300, 64));
    MUST(mi_heap_strdup(heap, "text"));
    MUST(mi_heap_realloc(heap, mi_heap_malloc(heap, 10), 100000));
}
VICTIM static void victim_deleted(mi_heap_t *heap) { MUST(mi_heap_malloc(heap, 107)); }
VICTIM static void victim_freed(mi_heap_t *heap) { mi_free(mi_heap_malloc(heap, 109)); }

VICTIM static void victim_moved_out(mi_heap_t *heap) { MUST(mi_realloc(mi_heap_malloc(heap, 10), 100000)); }
// Addresses of the heap may belong to other blocks later.
VICTIM static void victim_reused(mi_heap_t *heap) {
    mi_free(mi_heap_malloc(heap, 300000));
    MUST(mi_malloc(300000));
}

int main(void) {
    for (int i = 0; i < 50; i++) {
        mi_heap_t *heap = mi_heap_new();
        victim_deleted(heap);
        mi_heap_delete(heap);
        // A new heap at the same address.
        heap = mi_heap_new();
        victim_destroyed(heap);
        victim_freed(heap);
        victim_moved_out(heap);
        victim_reused(heap);
        mi_heap_destroy(heap);
    }
    puts("done");
    return 0;
}
