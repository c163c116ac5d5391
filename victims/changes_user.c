// The program gives up root in mid-run, then starts threads and a child: all of it is recorded.
// needs: root
// build: -pthread
// expect: frame=victim_before allocs=100 alloc_bytes=15700 outstanding=100
// expect: frame=victim_after allocs=50000 alloc_bytes=8150000 outstanding=0
// expect: frame=victim_thread allocs=100 alloc_bytes=16700 outstanding=100
// expect: frame=victim_child allocs=100 alloc_bytes=17300 outstanding=100
// expect-processes: 2
#include <grp.h>
#include <pthread.h>
#include <sys/wait.h>

#include "victim.h"

VICTIM static void victim_before(void) {
    for (int i = 0; i < 100; i++)
        MUST(malloc(157) != NULL);
}
VICTIM static void victim_after(void) {
    for (int i = 0; i < 50000; i++)
        free(malloc(163));
}
VICTIM static void *victim_thread(void *unused) {
    for (int i = 0; i < 100; i++)
        MUST(malloc(167) != NULL);
    return unused;
}
VICTIM static void victim_child(void) {
    for (int i = 0; i < 100; i++)
        MUST(malloc(173) != NULL);
}

int main(void) {
    victim_before();
    MUST(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
    victim_after();
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, victim_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    if (fork() == 0) {
        victim_child();
        _exit(0);
    }
    MUST(wait(NULL) > 0);
    puts("done");
    return 0;
}
