// A signal handler allocates 50 blocks of 123 bytes while a function without a frame is at work: the
// stack of each leads through that function to its callers.
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile int left = 50;

__attribute__((noinline)) static void handle(int signal) {
    (void)signal;
    if (left > 0) {
        left--;
        (void)!malloc(123);
    }
}

// It calls nothing, so that its return address stays in its register.
__attribute__((noinline)) static unsigned long leaf(unsigned long value) {
    for (int step = 0; step < 10000000 && left > 0; step++) value = value * 3 + (value >> 7);
    return value;
}

__attribute__((noinline)) static unsigned long calls_leaf(unsigned long value) { return leaf(value) + 1; }

int main(void) {
    signal(SIGALRM, handle);
    struct itimerval interval = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &interval, NULL);
    unsigned long value = 1;
    while (left > 0) value = calls_leaf(value);
    return value == 0;
}
