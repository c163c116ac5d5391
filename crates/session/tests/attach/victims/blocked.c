/* Threads that wait in one system call each while somebody attaches and detaches; each says whether it saw what it should.
   On a line of input all of them are let go; the answer is "ok" or what went wrong. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
static int pipes[4][2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int is_open;
static const char *wrong;
static double elapsed(struct timespec from) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - from.tv_sec) + 1e-9 * (double)(now.tv_nsec - from.tv_nsec);
}
static void *reader(void *unused) {
    char byte = 0;
    errno = 77;
    if (read(pipes[0][0], &byte, 1) != 1 || byte != 'x') wrong = "read";
    if (errno != 77) wrong = "errno";
    return unused;
}
static void *sleeper(void *unused) {
    struct timespec begin, time = {2, 500000000};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (nanosleep(&time, 0) != 0) wrong = "nanosleep";
    if (elapsed(begin) < 2.5 || elapsed(begin) > 20) wrong = "time of nanosleep";
    return unused;
}
static void *poller(void *unused) {
    struct pollfd one = {pipes[1][0], POLLIN, 0};
    if (poll(&one, 1, -1) != 1) wrong = "poll";
    return unused;
}
static void *epoller(void *unused) {
    int poll = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {0}}, got;
    epoll_ctl(poll, EPOLL_CTL_ADD, pipes[2][0], &event);
    int count;
    /* As the manual says, epoll_wait ends with EINTR when a debugger stops it. */
    while ((count = epoll_wait(poll, &got, 1, -1)) < 0 && errno == EINTR) {}
    if (count != 1) wrong = "epoll_wait";
    return unused;
}
static void *waiter(void *unused) {
    pthread_mutex_lock(&mutex);
    while (!is_open) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}
static volatile sig_atomic_t is_in_handler;
static void handler(int number) {
    char byte;
    (void)number;
    is_in_handler = 1;
    if (read(pipes[3][0], &byte, 1) != 1) wrong = "read in a handler";
}
static void *handled(void *unused) {
    stack_t stack = {malloc(65536), 0, 65536};
    sigaltstack(&stack, 0);
    pthread_kill(pthread_self(), SIGUSR1);
    return unused;
}
/* Registers of all kinds hold values through a loop without calls. */
static volatile int is_counting = 1;
static void *counter(void *unused) {
    double a = 1, b = 2;
    unsigned long n = 0, m = 0;
    while (is_counting) {
        n++; m += 3; a += 1; b += 2;
        if (m != n * 3 || b != a * 2) { wrong = "registers"; break; }
        if (n > 1000000000) { n = m = 0; a = 1; b = 2; }
    }
    return unused;
}
int main(void) {
    void *(*bodies[])(void *) = {reader, sleeper, poller, epoller, waiter, handled, counter};
    pthread_t threads[7];
    char line[16];
    struct sigaction action = {0};
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK | SA_RESTART;
    sigaction(SIGUSR1, &action, 0);
    setvbuf(stdout, 0, _IONBF, 0);
    for (int i = 0; i < 4; i++) if (pipe(pipes[i])) return 1;
    for (int i = 0; i < 7; i++) pthread_create(&threads[i], 0, bodies[i], 0);
    while (!is_in_handler) usleep(1000);
    puts("ready");
    if (read(0, line, sizeof line) <= 0) return 0;
    is_counting = 0;
    for (int i = 0; i < 4; i++) if (write(pipes[i][1], "x", 1) != 1) return 1;
    pthread_mutex_lock(&mutex);
    is_open = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 7; i++) pthread_join(threads[i], 0);
    puts(wrong ? wrong : "ok");
    return 0;
}
