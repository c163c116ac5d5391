// Children forked while eight threads allocate; each child allocates 50 blocks and ends by _exit.
// build: -pthread
// expect: frame=victim_child allocs=1000 alloc_bytes=17000 outstanding=0
// expect: frame=victim_busy allocs>=8 outstanding=0
// expect-processes: 21
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "victim.h"

static atomic_int is_over;

VICTIM static void *victim_busy(void *unused) {
    (void)unused;
    do
        free(malloc(33));
    while (!is_over);
    return NULL;
}
VICTIM static void victim_child(void) {
    for (int i = 0; i < 50; i++)
        free(malloc(17));
}

int main(void) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        MUST(pthread_create(&threads[i], NULL, victim_busy, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            victim_child();
            _exit(0);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child && status == 0);
    }
    is_over = 1;
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
