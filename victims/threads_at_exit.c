// The program ends while eight detached threads still allocate: all events of the main thread are
// recorded, and the program does not hang.
// build: -pthread
// expect: frame=victim_main_thread allocs=1000 alloc_bytes=313000 outstanding=1000
// expect: frame=victim_detached allocs>=8
#include <pthread.h>
#include <stdatomic.h>

#include "victim.h"

static atomic_int begun;

VICTIM static void *victim_detached(void *unused) {
    for (;;) {
        free(malloc(317));
        begun++;
    }
    return unused;
}
VICTIM static void victim_main_thread(void) {
    for (int i = 0; i < 1000; i++)
        MUST(malloc(313) != NULL);
}

int main(void) {
    for (int i = 0; i < 8; i++) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, victim_detached, NULL) == 0);
        pthread_detach(thread);
    }
    victim_main_thread();
    while (begun < 10000)
        ;
    puts("done");
    return 0;
}
