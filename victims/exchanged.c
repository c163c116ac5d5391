// Three threads put blocks into four places and free what they find there, at once and without end: the same addresses change hands within
// nanoseconds, now through a thread's own lists (64 bytes), now through the arena (3,000). A free must never come before its allocation in
// the file, nor an allocation before the free that made room for it, which is what times that are read too early do here. In the second half the
// threads pause now and then: who owns an address's region then changes all the time, while without pauses they soon leave all to nobody.
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
