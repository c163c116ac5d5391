// Four threads whose reallocs move blocks, so that addresses pass from one thread to another
// between the two halves of a realloc.
// build: -pthread
// environment: MALLOC_ARENA_MAX=1
// seconds: 60
// verify: 64
// expect-unmatched: 0
// expect: frame=victim_mover allocs=404000 outstanding=0
// expect: frame=victim_mover reallocs=400000
#include <pthread.h>

#include "victim.h"

VICTIM static void *victim_mover(void *argument) {
    unsigned seed = (unsigned)(size_t)argument;
    for (int round = 0; round < 1000; round++) {
        char *block = malloc(1100);
        for (int i = 0; i < 100; i++) {
            seed = seed * 1103515245 + 12345;
            block = realloc(block, 1100 + (seed >> 16) % 3000);
            MUST(block != NULL);
        }
        free(block);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        MUST(pthread_create(&threads[i], NULL, victim_mover, (void *)(i + 1)) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
