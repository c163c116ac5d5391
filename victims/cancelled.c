// Threads cancelled while they wait. Their clean-up handlers, which run on top of the waiting
// frame, free one block and allocate another.
// build: -pthread
// expect: frame=victim_waiting allocs=100 alloc_bytes=33400 outstanding=50
// expect: frame=victim_clean_up allocs=50 alloc_bytes=16850 outstanding=50
#include <pthread.h>

#include "victim.h"

VICTIM static void victim_clean_up(void *block) {
    free(block);
    MUST(malloc(337) != NULL);
}
VICTIM static void *victim_waiting(void *unused) {
    pthread_cleanup_push(victim_clean_up, malloc(331));
    for (;;)
        pause();
    pthread_cleanup_pop(0);
    return unused;
}

int main(void) {
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, victim_waiting, NULL) == 0);
        if (i % 2)
            usleep(500);
        // Cancellation is deferred: a thread that was cancelled before it ran gets as far as
        // pause().
        MUST(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
    }
    puts("done");
    return 0;
}
