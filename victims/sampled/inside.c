// An embedded allocator with jemalloc's interface under a prefix, whose functions call one another,
// jump to one another, and allocate from the C library. The program counts its allocations by
// function, and prints them at its end, as totals.c:
//     FUNCTION allocations bytes live live-bytes
// Before that it counts the instructions of a pair of its malloc and free, as steps.c, and prints
// their number, or 0 if it cannot. With a file as an argument it first prints its pid, and waits
// for the file. Its functions are static, so that the compiler lets callers keep registers that
// these do not touch.
// build: -O2 -fno-ipa-icf -pthread
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../victim.h"

#define INSIDE __attribute__((noinline, noclone, used)) static

enum { BLOCKS = 40000, ROUNDS = 20000, THREADS = 4, PAIRS = 8, TRIES = 6 };

// Blocks of a power of two, with their size in front; free ones are linked.
typedef struct head { size_t bytes; struct head *next; } head;
static __thread head *free_blocks[48];

INSIDE void *_rjem_malloc(size_t bytes) {
    unsigned class = bytes < 32 ? 5 : 64 - __builtin_clzl(bytes - 1);
    head *block = free_blocks[class];
    if (block) free_blocks[class] = block->next;
    else block = malloc(sizeof(head) + ((size_t)1 << class));
    block->bytes = bytes;
    return block + 1;
}
INSIDE void _rjem_free(void *block) {
    if (!block) return;
    head *at = (head *)block - 1;
    unsigned class = at->bytes < 32 ? 5 : 64 - __builtin_clzl(at->bytes - 1);
    at->next = free_blocks[class];
    free_blocks[class] = at;
}
INSIDE void *_rjem_calloc(size_t count, size_t bytes) {
    return memset(_rjem_malloc(count * bytes), 0, count * bytes);
}
INSIDE void *_rjem_realloc(void *old, size_t bytes) {
    void *block = _rjem_malloc(bytes);
    if (old) {
        size_t before = ((head *)old - 1)->bytes;
        memcpy(block, old, before < bytes ? before : bytes);
        _rjem_free(old);
    }
    return block;
}
INSIDE int _rjem_posix_memalign(void **place, size_t alignment, size_t bytes) {
    *place = _rjem_malloc(bytes);
    return alignment ? 0 : 22;
}
__attribute__((optimize("optimize-sibling-calls"))) INSIDE void *_rjem_mallocx(size_t bytes, int flags) { return flags ? _rjem_calloc(1, bytes) : _rjem_malloc(bytes); }
INSIDE void _rjem_sdallocx(void *block, size_t bytes, int flags) { (void)bytes; if (!flags) _rjem_free(block); }

static void *volatile block;

VICTIM static void pairs(void) {
    for (int i = 0; i < PAIRS; i++) {
        block = _rjem_malloc(64);
        _rjem_free(block);
    }
}

// Returns 0 if this process may not trace its child.
static long steps(void) {
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(1);
        for (int i = 0; i < 100; i++) pairs();
        __asm__ volatile("int3");
        pairs();
        __asm__ volatile("int3");
        _exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child);
    if (!WIFSTOPPED(status)) return 0;
    long count = 0;
    for (;;) {
        MUST(ptrace(PTRACE_SINGLESTEP, child, 0, 0) == 0);
        MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        // The second trap is executed, not stepped to: its instruction lies before.
        long pc = ptrace(PTRACE_PEEKUSER, child, 16 * 8, 0);
        if ((ptrace(PTRACE_PEEKTEXT, child, pc, 0) & 0xff) == 0xcc) break;
        MUST(++count < 100000);
    }
    kill(child, 9);
    waitpid(child, &status, 0);
    return count / PAIRS;
}

// Returns the fewest of some tries: a sample may be among the pairs.
static long fewest_steps(void) {
    long fewest = steps();
    for (int i = 1; i < TRIES && fewest > 0; i++) {
        long again = steps();
        if (again < fewest) fewest = again;
    }
    return fewest;
}

static void tell(const char *name, size_t count, size_t bytes, size_t live, size_t live_bytes) {
    printf("%s %zu %zu %zu %zu\n", name, count, bytes, live, live_bytes);
}

VICTIM static void *sampled_malloc(size_t bytes) { return _rjem_malloc(bytes); }
VICTIM static void *sampled_calloc(size_t bytes) { return _rjem_calloc(bytes / 8, 8); }
VICTIM static void *sampled_realloc(void *old, size_t bytes) { return _rjem_realloc(old, bytes); }
VICTIM static void *sampled_aligned(size_t bytes) {
    void *made = NULL;
    MUST(_rjem_posix_memalign(&made, 16, bytes) == 0);
    return made;
}
VICTIM static void *sampled_jumps(size_t bytes, int flags) { return _rjem_mallocx(bytes, flags); }
VICTIM static void *sampled_in_thread(size_t bytes) { return _rjem_malloc(bytes); }
VICTIM static void *sampled_of_c_library(size_t bytes) { return malloc(bytes); }

static void *kept[BLOCKS];

// Half of the blocks stay.
static void of_many_sizes(void) {
    size_t bytes = 0, live = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = 16 + i % 50 * 8;
        kept[i] = sampled_malloc(size);
        bytes += size;
    }
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % 2) _rjem_free(kept[i]);
        else live += 16 + i % 50 * 8;
    tell("sampled_malloc", BLOCKS, bytes, BLOCKS / 2, live);
}

static void *work(void *unused) {
    (void)unused;
    for (size_t i = 0; i < ROUNDS; i++) _rjem_free(sampled_in_thread(160));
    return NULL;
}

int main(int count_of_arguments, char **arguments) {
    if (count_of_arguments == 2) {
        // Any process may attach that the system's rules allow.
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        printf("%d\n", getpid());
        fflush(stdout);
        while (access(arguments[1], F_OK) != 0) usleep(1000);
    }
    printf("%ld\n", fewest_steps());
    fflush(stdout);
    of_many_sizes();
    size_t bytes = 0, count = 0;
    for (size_t i = 0; i < 200; i++) {
        void *grown = NULL;
        for (size_t size = 32; size < 20000; size += size / 2, count++) {
            grown = sampled_realloc(grown, size);
            bytes += size;
        }
        _rjem_sdallocx(grown, bytes, 0);
    }
    tell("sampled_realloc", count, bytes, 0, 0);
    for (size_t i = 0; i < ROUNDS; i++) {
        _rjem_free(sampled_calloc(240));
        _rjem_free(sampled_aligned(200));
        _rjem_sdallocx(sampled_jumps(320, i & 1), 320, 0);
        free(sampled_of_c_library(280));
    }
    tell("sampled_calloc", ROUNDS, ROUNDS * 240, 0, 0);
    tell("sampled_aligned", ROUNDS, ROUNDS * 200, 0, 0);
    tell("sampled_jumps", ROUNDS, ROUNDS * 320, 0, 0);
    tell("sampled_of_c_library", ROUNDS, ROUNDS * 280, 0, 0);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) MUST(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (size_t i = 0; i < THREADS; i++) MUST(pthread_join(threads[i], NULL) == 0);
    tell("sampled_in_thread", THREADS * ROUNDS, (size_t)THREADS * ROUNDS * 160, 0, 0);
    return 0;
}
