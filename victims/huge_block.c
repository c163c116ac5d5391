// Five GiB of address space in one block: sizes beyond 32 bits are recorded exactly.
// expect: frame=victim_huge allocs=2 alloc_bytes=10737418245 outstanding=1 outstanding_bytes=5368709125 peak_bytes=10737418245
#include "victim.h"

VICTIM static void *victim_huge(size_t more) { return malloc(5368709120ul + more); }

int main(void) {
    char *first = victim_huge(0), *second = victim_huge(5);
    if (!first || !second)
        return 0;
    first[5368709119ul] = 1;
    free(first);
    puts("done");
    return 0;
}
