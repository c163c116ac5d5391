// A program on musl instead of glibc: traced all the same, without the C library's own frames,
// which have no unwind tables.
// needs: musl-gcc
// build: compiler=musl-gcc
// exit: 6
// expect: frame=victim_on_musl allocs=1000 alloc_bytes=307000 outstanding=0
#include "victim.h"

VICTIM static void victim_on_musl(void) { free(malloc(307)); }

int main(void) {
    for (int i = 0; i < 1000; i++)
        victim_on_musl();
    puts("done");
    return 6;
}
