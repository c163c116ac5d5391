// Five thousand threads, sixteen at a time, each with ten blocks of which one is freed by the main thread.
// build: -pthread
// expect: frame=victim_thread allocs=50000 alloc_bytes=3650000 outstanding=0
#include <pthread.h>

#include "victim.h"

VICTIM static void *victim_thread(void *unused) {
    (void)unused;
    void *blocks[10];
    for (int i = 0; i < 10; i++)
        blocks[i] = malloc(73);
    for (int i = 1; i < 10; i++)
        free(blocks[i]);
    return blocks[0];
}

int main(void) {
    for (int round = 0; round < 5000; round += 16) {
        pthread_t threads[16];
        int count = round + 16 <= 5000 ? 16 : 5000 - round;
        for (int i = 0; i < count; i++)
            MUST(pthread_create(&threads[i], NULL, victim_thread, NULL) == 0);
        for (int i = 0; i < count; i++) {
            void *block;
            MUST(pthread_join(threads[i], &block) == 0);
            free(block);
        }
    }
    puts("done");
    return 0;
}
