// A handler that allocates while the main thread is inside a hook: the main thread makes calls that fail before the allocator
// takes a lock (so that this is allowed) and is interrupted 2,000 times, mostly in the agent.
// expect: frame=victim_handler allocs=2000 alloc_bytes=178000 outstanding=0
// expect: frame=victim_failing allocs>=0
#include <sys/time.h>
#include <time.h>

#include "victim.h"

static volatile sig_atomic_t runs;
static volatile size_t too_large = SIZE_MAX / 2 + 9;

VICTIM static void victim_handler(int number) {
    (void)number;
    if (runs < 2000) {
        runs++;
        free(malloc(89));
    }
}
VICTIM static void victim_failing(void) {
    while (runs < 2000)
        MUST(malloc(too_large) == NULL);
}

int main(void) {
    static char room[16384];
    stack_t alternate = {.ss_sp = room, .ss_size = sizeof room};
    MUST(sigaltstack(&alternate, NULL) == 0);
    struct sigaction action = {.sa_handler = victim_handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    // The C library prepares its allocator in the first call, which no handler may interrupt with another.
    free(malloc(1));
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec often = {{0, 200000}, {0, 200000}};
    MUST(timer_settime(timer, 0, &often, NULL) == 0);
    victim_failing();
    MUST(timer_delete(timer) == 0);
    puts("done");
    return 0;
}
