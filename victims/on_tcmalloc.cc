// A program on a dynamically linked tcmalloc: malloc's kin, operator new and delete, and the tc_ calls.
// needs: gperftools/tcmalloc.h libtcmalloc_minimal.so
// build: -ltcmalloc_minimal -std=c++17
// expect: frame=victim_malloc allocs=30 alloc_bytes=7830 frees=30 reallocs=10
// expect: frame=victim_new allocs=20 alloc_bytes=4820 outstanding=10 outstanding_bytes=2410
// expect: frame=victim_tc_malloc allocs=30 frees=30 reallocs=10
// expect: frame=victim_tc_new allocs=20 alloc_bytes=5420 outstanding=0
// expect: frame=victim_tc_memalign allocs=20 alloc_bytes=5540 outstanding=0
// expect-unmatched: 0
#include <gperftools/tcmalloc.h>

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
VICTIM static void victim_tc_malloc() {
    tc_free(tc_calloc(1, 263));
    void *block = tc_realloc(tc_malloc(263), 5000);
    tc_free_sized(block, 5000);
}
VICTIM static void victim_tc_new() {
    tc_delete(tc_new(271));
    tc_deletearray(tc_newarray(271));
}
VICTIM static void victim_tc_memalign() {
    tc_free(tc_memalign(64, 277));
    void *block = nullptr;
    MUST(tc_posix_memalign(&block, 64, 277) == 0);
    tc_free(block);
}

int main() {
    for (int i = 0; i < 10; i++) {
        victim_malloc();
        victim_new();
        victim_tc_malloc();
        victim_tc_new();
        victim_tc_memalign();
    }
    puts("done");
}
