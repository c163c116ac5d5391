// A program on a dynamically linked jemalloc: malloc and its kin, jemalloc's operators new and
// delete, and jemalloc's own calls.
// needs: jemalloc/jemalloc.h libjemalloc.so
// build: -ljemalloc -std=c++17
// expect: frame=victim_malloc allocs=30 alloc_bytes=7830 frees=30 reallocs=10
// expect: frame=victim_new allocs=20 alloc_bytes=4820 outstanding=10 outstanding_bytes=2410
// expect: frame=victim_mallocx allocs=10 alloc_bytes=2690 outstanding=0
// expect: frame=victim_rallocx allocs=20 alloc_bytes=105380 frees=20 reallocs=10
// expect: frame=victim_xallocx allocs=20 frees=20 reallocs=10
// expect-unmatched: 0
#include <jemalloc/jemalloc.h>

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
    operator delete(gone, 241);
}
VICTIM static void victim_mallocx() { sdallocx(mallocx(269, MALLOCX_ALIGN(64)), 269, MALLOCX_ALIGN(64)); }
VICTIM static void victim_rallocx() {
    void *block = mallocx(538, 0);
    block = rallocx(block, 10000, 0);
    dallocx(block, 0);
}
// A block grows in place within its size class.
VICTIM static void victim_xallocx() {
    void *block = mallocx(900, 0);
    MUST(xallocx(block, 1000, 0, 0) >= 1000);
    dallocx(block, 0);
}

int main() {
    for (int i = 0; i < 10; i++) {
        victim_malloc();
        victim_new();
        victim_mallocx();
        victim_rallocx();
        victim_xallocx();
    }
    puts("done");
}
