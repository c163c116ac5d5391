// The frame pointer register in other uses. Frames that need it, that put anything into it and that
// leave it alone follow each other in random order. Outer frames change while inner ones return to
// the same place, and each value of the register is another one. An unwinder that reuses the last
// stack because of the wrong registers fails here.
// variant: -O2 -fomit-frame-pointer -DOMITTED
// variant: -O2 -fno-omit-frame-pointer
// variant: -O0
// expect: frame=victim_leaf allocs=60000 alloc_bytes=15420000 outstanding=0
// expect: frame=victim_outermost allocs=60000 alloc_bytes=15420000 outstanding=0
#include <alloca.h>

#include "victim.h"

static uint64_t seed = 88172645463325252u;
static volatile uint64_t sink;

static unsigned any(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33);
}
VICTIM static void victim_leaf(void) {
    void *volatile block = malloc(257);
    free(block);
}

// A path holds the kinds of the inner frames, two bits each.
static void descend(unsigned path, int depth);

VICTIM static void victim_leaves_it(unsigned path, int depth) {
    descend(path, depth);
    sink++;
}
// In builds where it is the frame pointer, the compiler does not release the register.
#if defined(__x86_64__) && defined(OMITTED)
#define PUT_ANYTHING() __asm__ volatile("mov %0, %%rbp" : : "r"(seed) : "rbp")
#else
#define PUT_ANYTHING() __asm__ volatile("" ::: "memory")
#endif
VICTIM static void victim_uses_it(unsigned path, int depth) {
    PUT_ANYTHING();
    descend(path, depth);
    sink++;
}
VICTIM static void victim_needs_it(unsigned path, int depth) {
    // The room has the same size each time, so that the inner frames lie where they lay before.
    volatile char *room = alloca(48 + (sink == UINT64_MAX ? any() % 64 : 0));
    room[0] = 1;
    descend(path, depth);
    sink += room[0];
}
VICTIM static void victim_needs_it_aligned(unsigned path, int depth) {
    volatile char room[64] __attribute__((aligned(64)));
    room[0] = 1;
    descend(path, depth);
    sink += room[0];
}

__attribute__((always_inline)) static inline void descend(unsigned path, int depth) {
    if (depth == 0) {
        victim_leaf();
        return;
    }
    switch (path & 3) {
    case 0:
        victim_leaves_it(path >> 2, depth - 1);
        break;
    case 1:
        victim_uses_it(path >> 2, depth - 1);
        break;
    case 2:
        victim_needs_it(path >> 2, depth - 1);
        break;
    default:
        victim_needs_it_aligned(path >> 2, depth - 1);
    }
}
VICTIM static void victim_outermost(unsigned path, int depth) {
    descend(path, depth);
    sink++;
}

int main(void) {
    for (int turn = 0; turn < 20000; turn++) {
        // Six frames, of which a few change: the same path three times, with another kind of an
        // outer frame in between.
        unsigned path = any() % 16 | (any() % 2 ? 0x5a0 : 0xe40);
        victim_outermost(path, 6);
        victim_outermost(path ^ 1u << (any() % 12), 6);
        victim_outermost(path, 6);
    }
    puts("done");
    return 0;
}
