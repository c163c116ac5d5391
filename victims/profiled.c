// A profiling timer of 4 kHz that interrupts allocator and agent alike while the main thread makes a million pairs.
// expect: frame=victim_pairs allocs=1000000 alloc_bytes=97000000 outstanding=0
// verify: 64
#include <time.h>

#include "victim.h"

static volatile sig_atomic_t runs;

static void handler(int number) {
    (void)number;
    runs++;
}
VICTIM static void victim_pairs(void) {
    for (int i = 0; i < 1000000; i++)
        free(malloc(97));
}

int main(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGPROF, &action, NULL) == 0);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec often = {{0, 250000}, {0, 250000}};
    MUST(timer_settime(timer, 0, &often, NULL) == 0);
    victim_pairs();
    MUST(timer_delete(timer) == 0);
    MUST(runs > 0);
    puts("done");
    return 0;
}
