// A double fork: the first process ends at once, the daemon allocates half a second later and is recorded to its end.
// expect: frame=victim_daemon allocs=10 alloc_bytes=710 outstanding=10
// expect-processes: 3
#include "victim.h"

VICTIM static void victim_daemon(void) {
    for (int i = 0; i < 10; i++)
        MUST(malloc(71) != NULL);
}

int main(void) {
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            usleep(500000);
            victim_daemon();
            _exit(0);
        }
        _exit(0);
    }
    puts("done");
    return 0;
}
