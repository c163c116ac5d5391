// Allocates and frees in three threads, one of which lies in timed sleeps and one in signal handlers,
// until it is told to end; each block is checked, and all registers of numbers are used. It prints
// what went wrong.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_int is_over, faults;
static atomic_long rounds, ticks;

static void handle_end(int signal) { (void)signal; is_over = 1; }
static void handle_tick(int signal) { (void)signal; ticks++; }

__attribute__((noinline)) static void round_of(unsigned *seed, double *sum) {
    unsigned char *blocks[16];
    size_t sizes[16];
    for (int number = 0; number < 16; number++) {
        *seed = *seed * 1664525u + 1013904223u;
        sizes[number] = 16 + (*seed >> 20);
        blocks[number] = number % 3 ? malloc(sizes[number]) : calloc(1, sizes[number]);
        memset(blocks[number], (int)(*seed & 0xff), sizes[number]);
        *sum = *sum * 0.5 + sizes[number];
    }
    for (int number = 0; number < 16; number++) {
        if (number % 4 == 0) {
            unsigned char first = blocks[number][0];
            blocks[number] = realloc(blocks[number], sizes[number] * 2);
            if (blocks[number][0] != first || blocks[number][sizes[number] - 1] != first) faults++;
        }
        free(blocks[number]);
    }
    rounds++;
}

static void *work(void *argument) {
    unsigned seed = (unsigned)(long)argument;
    double sum = 1;
    while (!is_over) {
        errno = 1234;
        round_of(&seed, &sum);
        if (errno != 1234) faults++;
    }
    return sum < 0 ? argument : NULL;
}

static void *sleep_on(void *argument) {
    int queue = epoll_create1(0);
    while (!is_over) {
        struct timespec pause = {0, 3000000};
        if (nanosleep(&pause, NULL) != 0 && errno != EINTR) faults++;
        struct epoll_event event;
        if (epoll_wait(queue, &event, 1, 3) < 0 && errno != EINTR) faults++;
        free(malloc(200));
    }
    close(queue);
    return argument;
}

int main(void) {
    signal(SIGTERM, handle_end);
    signal(SIGALRM, handle_tick);
    struct itimerval interval = {{0, 5000}, {0, 5000}};
    setitimer(ITIMER_REAL, &interval, NULL);
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, work, (void *)1);
    pthread_create(&threads[1], NULL, work, (void *)2);
    pthread_create(&threads[2], NULL, sleep_on, NULL);
    for (int number = 0; number < 3; number++) pthread_join(threads[number], NULL);
    printf("rounds %ld, ticks %ld, faults %d\n", (long)rounds, (long)ticks, (int)faults);
    return faults != 0;
}
