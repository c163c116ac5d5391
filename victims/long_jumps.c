// longjmp out of deep stacks and out of a signal handler: the stacks after it are those of the new, shallow calls.
// expect: frame=victim_deep_leaf allocs=300 alloc_bytes=30300
// expect-stack: victim_shallow <- main allocs=300 alloc_bytes=31200
// expect-stack: victim_other_leaf <- victim_other_path <- main allocs=300 alloc_bytes=32100
// expect-stack: victim_after_signal <- victim_signals <- main allocs=300 alloc_bytes=33000
#include <setjmp.h>

#include "victim.h"

static jmp_buf back;
static sigjmp_buf signal_back;

VICTIM static void victim_deep_leaf(void) { MUST(malloc(101) != NULL); }
VICTIM static int victim_deep(int depth) {
    if (depth == 0) {
        victim_deep_leaf();
        longjmp(back, 1);
    }
    return victim_deep(depth - 1) + 1;
}
VICTIM static void victim_shallow(void) { MUST(malloc(104) != NULL); }
VICTIM static void victim_other_leaf(void) { MUST(malloc(107) != NULL); }
VICTIM static void victim_other_path(void) {
    victim_other_leaf();
    errno = 0;
}
VICTIM static void victim_after_signal(void) { MUST(malloc(110) != NULL); }
static void handler(int number) {
    (void)number;
    siglongjmp(signal_back, 1);
}
VICTIM static void victim_signals(void) {
    if (sigsetjmp(signal_back, 1) == 0)
        raise(SIGUSR1);
    victim_after_signal();
}

int main(void) {
    struct sigaction action = {.sa_handler = handler};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    for (volatile int i = 0; i < 300; i++) {
        if (setjmp(back) == 0)
            victim_deep(i % 50);
        victim_shallow();
        victim_other_path();
        victim_signals();
    }
    puts("done");
    return 0;
}
