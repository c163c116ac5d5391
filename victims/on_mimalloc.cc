// A program on a dynamically linked mimalloc: malloc's kin, operator new and delete, and the mi_ calls.
// needs: mimalloc.h libmimalloc.so
// build: -lmimalloc -std=c++17
// expect: frame=victim_malloc allocs=30 alloc_bytes=7830 frees=30 reallocs=10
// expect: frame=victim_new allocs=20 alloc_bytes=4820 outstanding=10 outstanding_bytes=2410
// expect: frame=victim_mi_malloc allocs=40 frees=40 reallocs=10
// expect: frame=victim_mi_strdup allocs=10 alloc_bytes=70 outstanding=10 outstanding_bytes=70
// expect: frame=victim_mi_aligned allocs=20 alloc_bytes=5660 outstanding=0
// expect-unmatched: 0
#include <mimalloc.h>

#include "victim.h"

VICTIM static void victim_malloc() {
    free(calloc(1, 261));
    void *block = malloc(261);
    block = realloc(block, 261);
    free(block);
}
VICTIM static void victim_new() {
    char *kept = new char[241];
    char *gone = static_cast<char *>(operator new(241));
    MUST(kept && gone);
    operator delete(gone);
}
VICTIM static void victim_mi_malloc() {
    mi_free(mi_calloc(1, 281));
    mi_free(mi_zalloc(281));
    mi_free(mi_realloc(mi_malloc(281), 5000));
}
VICTIM static void victim_mi_strdup() { MUST(mi_strdup("victim") != nullptr); }
VICTIM static void victim_mi_aligned() {
    mi_free(mi_malloc_aligned(283, 64));
    mi_free_size(mi_new(283), 283);
}

int main() {
    for (int i = 0; i < 10; i++) {
        victim_malloc();
        victim_new();
        victim_mi_malloc();
        victim_mi_strdup();
        victim_mi_aligned();
    }
    puts("done");
}
