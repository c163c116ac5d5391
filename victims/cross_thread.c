// Two threads free each other's blocks, 500,000 each, through a ring of 1,024: the totals are exact
// and no block is left.
// build: -pthread
// seconds: 60
// verify: 64
// expect: frame=victim_producer allocs=1000000 alloc_bytes=239000000 outstanding=0
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "victim.h"

#define COUNT 500000
struct ring {
    _Atomic(void *) slots[1024];
} rings[2];

VICTIM static void *victim_producer(void *argument) {
    size_t self = (size_t)argument;
    struct ring *mine = &rings[self], *other = &rings[1 - self];
    size_t taken = 0;
    for (size_t made = 0; made < COUNT || taken < COUNT;) {
        int is_idle = 1;
        if (made < COUNT && !mine->slots[made % 1024]) {
            mine->slots[made++ % 1024] = malloc(239);
            is_idle = 0;
        }
        if (taken < COUNT) {
            void *block = atomic_exchange(&other->slots[taken % 1024], NULL);
            if (block) {
                free(block);
                taken++;
                is_idle = 0;
            }
        }
        if (is_idle)
            sched_yield();
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        MUST(pthread_create(&threads[i], NULL, victim_producer, (void *)i) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
