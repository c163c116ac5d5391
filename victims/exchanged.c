// Three threads exchange blocks through four slots without end: the same addresses change hands
// within nanoseconds. They pass through a thread's own lists (64 bytes), or through the arena
// (3,000). In the file a free must never come before its allocation, nor an allocation before the
// free that made room for it; times that are read too early would do that here. In the second half
// the threads pause now and then. The owner of an address's region then changes all the time, while
// without pauses all regions soon are without an owner.
// build: -pthread
// seconds: 60
// verify: 64
// expect-unmatched: 0
// expect: frame=victim_exchange allocs=900000 outstanding=0
#include <pthread.h>
#include <stdatomic.h>

#include "victim.h"

#define COUNT 300000
#define THREADS 3
static struct place {
    _Alignas(64) _Atomic(void *) block;
} places[4];

VICTIM static void *victim_exchange(void *argument) {
    unsigned random = (unsigned)(size_t)argument * 77 + 1;
    for (int i = 0; i < COUNT; i++) {
        random = random * 1664525 + 1013904223;
        if (i > COUNT / 2 && (random >> 8 & 7) == 0)
            for (volatile unsigned pause = random >> 20; pause > 0; pause--) {
            }
        void *block = malloc(i / 1000 % 2 ? 64 : 3000);
        free(atomic_exchange(&places[random >> 30].block, block));
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, victim_exchange, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        free(places[i].block);
    puts("done");
    return 0;
}
