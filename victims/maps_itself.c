// A program that maps most of its memory itself: a notice says that no recorded block explains it.
// notice: in no recorded block
// expect: frame=victim_takes allocs=1 alloc_bytes=100 outstanding=0
#include <sys/mman.h>

#include "victim.h"

VICTIM static void victim_takes(void) { free(malloc(100)); }

int main(void) {
    char *memory = mmap(NULL, 20 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(memory != MAP_FAILED);
    memset(memory, 1, 20 << 20);
    victim_takes();
    return 0;
}
