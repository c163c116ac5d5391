// A rise, a fall, a higher rise, a lower one: the peak is the second, with exactly its bytes. The
// report shows each stack's part of it.
// expect: frame=victim_first allocs=100 alloc_bytes=1000000 outstanding=0 peak_bytes=0
// expect: frame=victim_second allocs=300 alloc_bytes=3000000 outstanding=0 peak_bytes=3000000
// expect: frame=victim_base allocs=1 alloc_bytes=500000 outstanding=1 peak_bytes=500000
// expect: frame=victim_third allocs=200 alloc_bytes=2000000 outstanding=200 outstanding_bytes=2000000 peak_bytes=0
#include "victim.h"

static void *blocks[300];

VICTIM static void victim_base(void) { MUST(malloc(500000) != NULL); }
VICTIM static void victim_first(void) {
    for (int i = 0; i < 100; i++)
        blocks[i] = malloc(10000);
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
}
VICTIM static void victim_second(void) {
    for (int i = 0; i < 300; i++)
        blocks[i] = malloc(10000);
    for (int i = 0; i < 300; i++)
        free(blocks[i]);
}
VICTIM static void victim_third(void) {
    for (int i = 0; i < 200; i++)
        blocks[i] = malloc(10000);
}

int main(void) {
    victim_base();
    victim_first();
    victim_second();
    victim_third();
    puts("done");
    return 0;
}
