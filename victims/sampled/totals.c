// Counts its allocations by function, and prints them at its end:
//     FUNCTION allocations bytes live live-bytes
// Run with samples, each number must lie in heapr's interval; what is freed must be gone.
// build: -pthread
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../victim.h"

enum { BLOCKS = 40000, THREADS = 4, SHORT_THREADS = 400, ROUNDS = 20000 };

static void *kept[BLOCKS];

static void tell(const char *name, size_t count, size_t bytes, size_t live, size_t live_bytes) {
    printf("%s %zu %zu %zu %zu\n", name, count, bytes, live, live_bytes);
    fflush(stdout);
}

VICTIM static void *sampled_malloc(size_t bytes) { return malloc(bytes); }
VICTIM static void *sampled_calloc(size_t bytes) { return calloc(bytes / 8, 8); }
VICTIM static void *sampled_realloc(void *block, size_t bytes) { return realloc(block, bytes); }
VICTIM static void *sampled_aligned(size_t alignment, size_t bytes) {
    void *block = NULL;
    MUST(posix_memalign(&block, alignment, bytes) == 0);
    return block;
}
VICTIM static void *sampled_memalign(size_t bytes) { return memalign(64, bytes); }
VICTIM static void *sampled_aligned_alloc(size_t bytes) { return aligned_alloc(4096, bytes); }
VICTIM static void *sampled_valloc(size_t bytes) { return valloc(bytes); }
VICTIM static void *sampled_in_thread(size_t bytes) { return malloc(bytes); }
VICTIM static void *sampled_in_short_thread(size_t bytes) { return malloc(bytes); }
VICTIM static void *sampled_in_handler(size_t bytes) { return malloc(bytes); }
VICTIM static void *sampled_in_child(size_t bytes) { return malloc(bytes); }

// Half of the blocks stay.
static void of_many_sizes(void) {
    size_t bytes = 0, live = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = 16 + i % 50 * 8;
        kept[i] = sampled_malloc(size);
        bytes += size;
    }
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % 2)
            free(kept[i]);
        else
            live += 16 + i % 50 * 8;
    tell("sampled_malloc", BLOCKS, bytes, BLOCKS / 2, live);
}

static void of_zeros(void) {
    for (size_t i = 0; i < ROUNDS; i++)
        free(sampled_calloc(240));
    tell("sampled_calloc", ROUNDS, ROUNDS * 240, 0, 0);
}

// Chains that grow, by steps that sample and steps that do not.
static void resized(void) {
    size_t bytes = 0, count = 0;
    for (size_t i = 0; i < 200; i++) {
        void *block = NULL;
        for (size_t size = 32; size < 20000; size += size / 2, count++) {
            block = sampled_realloc(block, size);
            bytes += size;
        }
        free(block);
    }
    tell("sampled_realloc", count, bytes, 0, 0);
}

static void aligned(void) {
    for (size_t i = 0; i < ROUNDS; i++) {
        free(sampled_aligned(16 << i % 5, 200));
        free(sampled_memalign(320));
    }
    tell("sampled_aligned", ROUNDS, ROUNDS * 200, 0, 0);
    tell("sampled_memalign", ROUNDS, ROUNDS * 320, 0, 0);
    for (size_t i = 0; i < 2000; i++) {
        free(sampled_aligned_alloc(4096));
        free(sampled_valloc(1000));
    }
    tell("sampled_aligned_alloc", 2000, 2000 * 4096, 0, 0);
    tell("sampled_valloc", 2000, 2000 * 1000, 0, 0);
}

static void *work(void *unused) {
    (void)unused;
    for (size_t i = 0; i < ROUNDS; i++)
        free(sampled_in_thread(160));
    return NULL;
}

// Allocates blocks that another thread frees.
static void *work_briefly(void *place) {
    *(void **)place = sampled_in_short_thread(700);
    return NULL;
}

static void in_threads(void) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (size_t i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    tell("sampled_in_thread", THREADS * ROUNDS, (size_t)THREADS * ROUNDS * 160, 0, 0);
    for (size_t i = 0; i < SHORT_THREADS; i++) {
        pthread_t thread;
        void *block = NULL;
        MUST(pthread_create(&thread, NULL, work_briefly, &block) == 0);
        MUST(pthread_join(thread, NULL) == 0);
        free(block);
    }
    tell("sampled_in_short_thread", SHORT_THREADS, SHORT_THREADS * 700, 0, 0);
}

static void handle(int number) {
    (void)number;
    free(sampled_in_handler(900));
}

static void in_handler(void) {
    struct sigaction action = {.sa_handler = handle};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    for (size_t i = 0; i < 2000; i++)
        raise(SIGUSR1);
    tell("sampled_in_handler", 2000, 2000 * 900, 0, 0);
}

// Children free blocks of their parent, and allocate themselves.
static void in_children(void) {
    for (size_t i = 0; i < 4; i++) {
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            for (size_t block = 0; block < BLOCKS; block += 2)
                free(kept[block]);
            for (size_t round = 0; round < ROUNDS; round++)
                free(sampled_in_child(120));
            _exit(0);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child && status == 0);
    }
    tell("sampled_in_child", 4 * ROUNDS, 4UL * ROUNDS * 120, 0, 0);
}

int main(void) {
    static char buffer[4096];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    of_many_sizes();
    of_zeros();
    resized();
    aligned();
    in_threads();
    in_handler();
    in_children();
    return 0;
}
