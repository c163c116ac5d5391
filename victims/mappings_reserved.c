// Address space that is reserved and made usable bit by bit, as garbage collectors do: only usable
// memory is live. (Recorded with --mmap by crates/heapr/tests/it/mappings.rs; without it mappings
// do not count as allocations.)
// notice: in no recorded block
// expect: frame=victim_reserve allocs=0
// expect: frame=victim_commit allocs=0
// expect: frame=victim_allocate allocs=1 alloc_bytes=100 outstanding=1
#include <sys/mman.h>

#include "victim.h"

#define MIB (1ul << 20)

VICTIM static char *victim_reserve(int flags) {
    char *space = mmap(NULL, MIB << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    MUST(space != MAP_FAILED);
    return space;
}

VICTIM static void victim_commit(char *at, size_t size) { MUST(mprotect(at, size, PROT_READ | PROT_WRITE) == 0); }

VICTIM static char *victim_map(size_t size) {
    char *mapping = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(mapping != MAP_FAILED);
    return mapping;
}

VICTIM static void victim_allocate(void) { MUST(malloc(100) != NULL); }

int main(void) {
    victim_allocate();
    char *first = victim_reserve(0), *second = victim_reserve(MAP_NORESERVE);
    for (int i = 0; i < 4; i++)
        victim_commit(first + i * MIB, MIB);
    victim_commit(second, 2 * MIB);
    memset(first, 1, 4 * MIB);
    // Two of four are given back, and the space stays reserved.
    MUST(mprotect(first + MIB, 2 * MIB, PROT_NONE) == 0);
    char *mapping = victim_map(8 * MIB);
    MUST(mprotect(mapping, 4096, PROT_READ) == 0);
    MUST(mprotect(mapping + 1, 4096, PROT_READ) != 0);
    return 0;
}
