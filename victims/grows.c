// A leak beside a cache of steady size whose blocks are renewed all the time, and blocks from the
// start. Several snapshots are taken while it runs.
// run: 12
// expect: frame=victim_leak allocs=1200 alloc_bytes=134400 outstanding=1200 outstanding_bytes=134400
// expect: frame=victim_cache allocs=24000 alloc_bytes=12000000 outstanding=1000 outstanding_bytes=500000
// expect: frame=victim_startup allocs=5000 alloc_bytes=320000 outstanding=5000 outstanding_bytes=320000
// expect-unmatched: 0
#include "victim.h"

static void *leaked, *cache[1000];

VICTIM static void victim_leak(void) {
    void **block = malloc(112);
    *block = leaked;
    leaked = block;
}
VICTIM static void victim_cache(int number) {
    free(cache[number % 1000]);
    cache[number % 1000] = malloc(500);
}
VICTIM static void victim_startup(void) {
    for (int number = 0; number < 5000; number++) {
        void **block = malloc(64);
        *block = leaked;
        leaked = block;
    }
}

int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 1;
    victim_startup();
    for (int round = 0; round < rounds; round++) {
        for (int number = 0; number < 2000; number++) {
            victim_cache(number);
            if (number % 20 == 0)
                victim_leak();
        }
        usleep(100000);
    }
    return 0;
}
