// Threads that each hold much memory for a moment, in an arena of their own: one after the other,
// or all at once. Then the program waits until its input ends. Each thread keeps its last block, so
// that its arena does not trim itself.
// It prints "KIND BYTES" for what it has made, and "ready".
// arguments: THREADS BYTES turns|together [FILE: it waits as long as there is this file instead]
// build: -pthread

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 1000 };

static long count;
static int takes_turns;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held, done;

static long resident_bytes(void) {
    long sum = 0, kilobytes;
    char line[256];
    FILE *file = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "Rss: %ld kB", &kilobytes) == 1) sum += kilobytes << 10;
    }
    fclose(file);
    return sum;
}

static void *hold(void *unused) {
    // Mapped, so that it is not in the measured heap.
    char **blocks = mmap(NULL, count * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (takes_turns) pthread_mutex_lock(&turn);
    for (long at = 0; at < count; at++) memset(blocks[at] = malloc(SIZE), 1, SIZE);
    if (!takes_turns) pthread_barrier_wait(&held);
    for (long at = 0; at + 1 < count; at++) free(blocks[at]);
    munmap(blocks, count * sizeof *blocks);
    if (takes_turns) pthread_mutex_unlock(&turn);
    pthread_barrier_wait(&done);
    pause();
    return unused;
}

int main(int argument_count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argument_count < 4) return 99;
    long threads = atol(arguments[1]);
    count = atol(arguments[2]) / SIZE;
    takes_turns = strcmp(arguments[3], "turns") == 0;
    // The function's buffers exist before the measurement.
    long before = resident_bytes();
    pthread_barrier_init(&held, NULL, threads);
    pthread_barrier_init(&done, NULL, threads + 1);
    for (long number = 0; number < threads; number++) {
        pthread_t thread;
        pthread_create(&thread, NULL, hold, NULL);
    }
    pthread_barrier_wait(&done);
    printf("grown_bytes %ld\n", resident_bytes() - before);
    puts("ready");
    if (argument_count > 4) {
        while (access(arguments[4], F_OK) == 0) usleep(10000);
        return 0;
    }
    while (getchar() != EOF) {
    }
    return 0;
}
