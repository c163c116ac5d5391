// Eight makecontext fibers on stacks of their own that take turns, allocating at different depths.
// expect: frame=victim_fiber allocs=800 alloc_bytes=101600 outstanding=400
// expect-stack: victim_leaf <- victim_fiber allocs=800
// expect-stack: victim_scheduler <- main allocs=100 alloc_bytes=13100
#include <ucontext.h>

#include "victim.h"

static ucontext_t scheduler, fibers[8];
static char stacks[8][65536];

VICTIM static void *victim_leaf(void) { return malloc(127); }
VICTIM static void victim_fiber(int number) {
    for (int turn = 0; turn < 100; turn++) {
        void *block = victim_leaf();
        swapcontext(&fibers[number], &scheduler);
        if (turn % 2)
            free(block);
    }
}
VICTIM static void victim_scheduler(void) {
    for (int turn = 0; turn < 100; turn++) {
        for (int number = 0; number < 8; number++)
            swapcontext(&scheduler, &fibers[number]);
        MUST(malloc(131) != NULL);
    }
    for (int number = 0; number < 8; number++)
        swapcontext(&scheduler, &fibers[number]);
}

int main(void) {
    for (int number = 0; number < 8; number++) {
        getcontext(&fibers[number]);
        fibers[number].uc_stack.ss_sp = stacks[number];
        fibers[number].uc_stack.ss_size = sizeof stacks[number];
        fibers[number].uc_link = &scheduler;
        makecontext(&fibers[number], (void (*)(void))victim_fiber, 1, number);
    }
    victim_scheduler();
    puts("done");
    return 0;
}
