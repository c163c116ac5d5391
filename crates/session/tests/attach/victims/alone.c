/* One thread that sleeps, and then polls with a time limit, while somebody attaches and detaches: neither ends before its time.
   Between them, and before the end, it waits for a line: whoever is late finds it there. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
static void wait_for_line(void) {
    char byte;
    while (read(0, &byte, 1) == 1 && byte != '\n') {
    }
}
int main(void) {
    struct timespec time = {1, 500000000};
    setvbuf(stdout, 0, _IONBF, 0);
    free(malloc(100));
    double begin = seconds();
    puts("ready");
    int answer = nanosleep(&time, 0);
    printf("%s\n", answer ? strerror(errno) : seconds() - begin < 1.5 ? "too short" : "slept");
    wait_for_line();
    begin = seconds();
    answer = poll(0, 0, 1500);
    printf("%s\n", answer ? strerror(errno) : seconds() - begin < 1.5 ? "too short" : "polled");
    wait_for_line();
    return 0;
}
