// Two hundred runs of a handler that allocates on a 16 KiB alternate stack, started by a timer while the main thread computes.
// expect: frame=victim_handler allocs=200 alloc_bytes=16200 outstanding=200
// expect: frame=victim_deep allocs=200 alloc_bytes=16200
// expect: frame=victim_on_main_stack allocs=50 alloc_bytes=4150
#include <sys/time.h>

#include "victim.h"

static volatile sig_atomic_t runs;

VICTIM static void victim_deep(int depth) {
    volatile char room[16];
    room[0] = 1;
    if (depth == 0)
        MUST(malloc(81) != NULL);
    else
        victim_deep(depth - 1);
    room[1] = room[0];
}
VICTIM static void victim_handler(int number) {
    (void)number;
    if (runs < 200) {
        runs++;
        victim_deep(20);
    }
}
VICTIM static void victim_on_main_stack(int number) {
    (void)number;
    MUST(malloc(83) != NULL);
}
VICTIM static void victim_spin(void) {
    while (runs < 200)
        ;
}
VICTIM static void victim_raise(void) {
    for (int i = 0; i < 50; i++)
        raise(SIGUSR1);
}

int main(void) {
    static char room[16384];
    stack_t alternate = {.ss_sp = room, .ss_size = sizeof room};
    MUST(sigaltstack(&alternate, NULL) == 0);
    struct sigaction action = {.sa_handler = victim_handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    MUST(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    victim_spin();
    memset(&timer, 0, sizeof timer);
    MUST(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    struct sigaction plain = {.sa_handler = victim_on_main_stack};
    MUST(sigaction(SIGUSR1, &plain, NULL) == 0);
    victim_raise();
    puts("done");
    return 0;
}
