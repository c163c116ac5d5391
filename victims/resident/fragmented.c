// Blocks of one size, of which all but each k-th are freed; then it waits for lines on its input.
// At the line "trim" it calls malloc_trim(0) and prints by how much its resident set has fallen.
// It prints "KIND BYTES" for what it has made, and "ready".
// arguments: COUNT SIZE KEPT_EVERY [THREADS]
// build: -pthread

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long count, size, every;
static pthread_barrier_t done;

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

static char *kept_block(void) { return malloc(size); }

static char *passing_block(void) { return malloc(size); }

static void *fragment(void *unused) {
    // Mapped, so that it is not in the measured heap.
    char **blocks = mmap(NULL, count * sizeof *blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long at = 0; at < count; at++) {
        blocks[at] = at % every == 0 ? kept_block() : passing_block();
        memset(blocks[at], 1, size);
    }
    for (long at = 0; at < count; at++) {
        if (at % every != 0) free(blocks[at]);
    }
    return unused;
}

static void *in_thread(void *unused) {
    fragment(NULL);
    pthread_barrier_wait(&done);
    pause();
    return unused;
}

int main(int argument_count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argument_count < 4) return 99;
    count = atol(arguments[1]), size = atol(arguments[2]), every = atol(arguments[3]);
    long threads = argument_count > 4 ? atol(arguments[4]) : 0;
    // The function's buffers exist before the measurement.
    long before = resident_bytes();
    pthread_barrier_init(&done, NULL, threads + 1);
    for (long number = 0; number < threads; number++) {
        pthread_t thread;
        pthread_create(&thread, NULL, in_thread, NULL);
    }
    if (threads > 0) pthread_barrier_wait(&done);
    else fragment(NULL);
    long blocks = (count + every - 1) / every * (threads > 0 ? threads : 1);
    printf("kept_bytes %ld\n", blocks * (long)malloc_usable_size(kept_block()));
    printf("grown_bytes %ld\n", resident_bytes() - before);
    puts("ready");
    char line[16];
    while (fgets(line, sizeof line, stdin)) {
        if (strcmp(line, "trim\n") == 0) {
            long untrimmed = resident_bytes();
            malloc_trim(0);
            printf("given_back %ld\n", untrimmed - resident_bytes());
        }
    }
    return 0;
}
