// Four threads take blocks of one size from one arena without caches of their own, so that a freed
// address goes to whichever thread asks next. If the order of events contradicted that, an address
// would be live twice: its second free would have no block, or a block would stay.
// build: -pthread
// environment: MALLOC_ARENA_MAX=1
// environment: GLIBC_TUNABLES=glibc.malloc.tcache_count=0
// seconds: 120
// verify: 64
// expect-unmatched: 0
// expect: frame=victim_taker allocs=100000 alloc_bytes=4800000 outstanding=0
#include <pthread.h>
#include <stdatomic.h>

#include "victim.h"

#define ROUNDS 25000
static atomic_int ready;
static atomic_long handed_over;

VICTIM static void *victim_taker(void *argument) {
    size_t self = (size_t)argument;
    long from_others = 0;
    ready++;
    while (ready < 4) {
    }
    for (int round = 0; round < ROUNDS; round++) {
        // The C library leaves the last words of a freed block as they are.
        volatile size_t *block = malloc(48);
        from_others += block[5] >= 1 && block[5] <= 4 && block[5] != self;
        block[5] = self;
        free((void *)block);
    }
    handed_over += from_others;
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        MUST(pthread_create(&threads[i], NULL, victim_taker, (void *)(i + 1)) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    MUST(handed_over > 0);
    puts("done");
    return 0;
}
