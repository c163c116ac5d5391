// More threads and processes at once than there are buffers, each of which has allocated and then
// is idle for long: the others must get buffers all the same. (The stacks of the last children are
// lost and counted, because no buffer is left for them.)
// build: -pthread
// seconds: 60
// exit: 0
// expect: frame=victim_thread allocs=2800 alloc_bytes=280000 outstanding=0
// expect: frame=victim_child allocs>=400
// expect-unmatched: 0
// expect-processes: 701
#include <pthread.h>

#include "victim.h"

#include <sys/wait.h>

enum { THREADS = 1400, CHILDREN = 700 };

static pthread_barrier_t all_are_there;

VICTIM static void victim_thread(void) {
    void *volatile block = malloc(100);
    MUST(block != NULL);
    free(block);
}

VICTIM static void victim_child(void) { MUST(malloc(200) != NULL); }

static void *work(void *unused) {
    victim_thread();
    pthread_barrier_wait(&all_are_there);
    victim_thread();
    return unused;
}

// Starts children that have allocated and wait until all exist.
static void many_children(void) {
    int ready[2], go[2];
    MUST(pipe(ready) == 0 && pipe(go) == 0);
    for (int number = 0; number < CHILDREN; number++) {
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            char word;
            close(go[1]);
            victim_child();
            MUST(write(ready[1], "r", 1) == 1);
            MUST(read(go[0], &word, 1) == 0);
            _exit(0);
        }
    }
    char word;
    for (int number = 0; number < CHILDREN; number++)
        MUST(read(ready[0], &word, 1) == 1);
    close(go[1]);
    int status;
    for (int number = 0; number < CHILDREN; number++)
        MUST(wait(&status) > 0 && status == 0);
}

int main(void) {
    free(malloc(1));
    many_children();
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    MUST(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 1 << 17) == 0);
    MUST(pthread_barrier_init(&all_are_there, NULL, THREADS + 1) == 0);
    for (int number = 0; number < THREADS; number++)
        MUST(pthread_create(&threads[number], &attributes, work, NULL) == 0);
    pthread_barrier_wait(&all_are_there);
    for (int number = 0; number < THREADS; number++)
        MUST(pthread_join(threads[number], NULL) == 0);
    puts("done");
    return 0;
}
