// The state of floating point belongs to the program: rounding, traps and flags are the same after
// each call for memory. There are three states: the usual one; all flags set, another rounding, no
// denormals; and all traps, which end it if heapr divides.
// With FILE it prints that it is ready, and begins when the file exists.
// expect: frame=victim_calls allocs=540000 alloc_bytes=81000000 outstanding=0
// seconds: 120
#include <malloc.h>

#include "victim.h"

enum { ROUNDS = 30000, CALLS = 6 };

struct floating {
    uint32_t mxcsr;
    uint16_t control, status;
};

static const struct floating STATES[] = {
    {0x1f80, 0x037f, 0}, {0xffff & ~0x40, 0x0c7f, 0}, {0x0000, 0x0340, 0}};

static void set(struct floating to) {
    __asm__ volatile("fnclex\n\tfldcw %0\n\tldmxcsr %1" : : "m"(to.control), "m"(to.mxcsr));
}
static struct floating now(void) {
    struct floating is;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1\n\tfnstsw %2" : "=m"(is.mxcsr), "=m"(is.control), "=m"(is.status));
    return is;
}
VICTIM static void must_be(struct floating before, const char *what) {
    struct floating is = now();
    if (is.mxcsr != before.mxcsr || is.control != before.control || is.status != before.status) {
        set(STATES[0]);
        fprintf(stderr, "%s: mxcsr %x for %x, control %x for %x, status %x for %x\n", what, is.mxcsr, before.mxcsr, is.control,
                before.control, is.status, before.status);
        _exit(99);
    }
}
#define CHECKED(call)                                                                                                  \
    do {                                                                                                               \
        call;                                                                                                          \
        must_be(state, #call);                                                                                         \
    } while (0)

VICTIM static void victim_calls(struct floating state, void **blocks) {
    CHECKED(blocks[0] = malloc(100));
    CHECKED(blocks[1] = calloc(10, 20));
    CHECKED(blocks[2] = aligned_alloc(64, 128));
    CHECKED(MUST(posix_memalign(&blocks[3], 32, 132) == 0));
    CHECKED(blocks[4] = memalign(16, 140));
    CHECKED(blocks[5] = realloc(NULL, 200));
}
VICTIM static void victim_changes(struct floating state, void **blocks) {
    CHECKED(blocks[0] = realloc(blocks[0], 3000));
    CHECKED(blocks[1] = reallocarray(blocks[1], 3, 7));
    CHECKED(free(strdup("text")));
    for (int i = 0; i < CALLS; i++)
        CHECKED(free(blocks[i]));
}

int main(int count, char **arguments) {
    if (count > 1) {
        puts("ready");
        fflush(stdout);
        while (access(arguments[1], F_OK) != 0)
            usleep(1000);
    }
    for (unsigned number = 0; number < sizeof STATES / sizeof *STATES; number++) {
        void *blocks[CALLS];
        // The kernel and the C library may change the state when it is set.
        set(STATES[number]);
        struct floating state = now();
        for (int round = 0; round < ROUNDS; round++) {
            victim_calls(state, blocks);
            victim_changes(state, blocks);
        }
        set(STATES[0]);
    }
    puts("done");
    return 0;
}
