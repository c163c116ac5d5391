// Threads on stacks that the program made itself, of the smallest allowed size, some of them
// malloc'ed and freed in between.
// build: -pthread
// expect: frame=victim_thread allocs=2000 alloc_bytes=514000 outstanding=0
// expect: frame=victim_make_stack allocs=200 alloc_bytes=3276800 outstanding=0
#include <limits.h>
#include <pthread.h>

#include "victim.h"

VICTIM static void *victim_thread(void *unused) {
    for (int i = 0; i < 10; i++)
        free(malloc(257));
    return unused;
}
VICTIM static void *victim_make_stack(void) { return aligned_alloc(4096, 16384); }
static void run_thread(void) {
    void *stack = victim_make_stack();
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    MUST(pthread_attr_setstack(&attributes, stack, 16384) == 0);
    MUST(pthread_create(&thread, &attributes, victim_thread, NULL) == 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    free(stack);
}

int main(void) {
    for (int i = 0; i < 200; i++)
        run_thread();
    puts("done");
    return 0;
}
