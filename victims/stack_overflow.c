// Recursion that allocates until the stack is full, then a handler on an alternate stack that jumps
// out, thirty times. The overflow may come inside a hook. Later calls are recorded as if it had not
// happened.
// expect-stack: victim_after <- main allocs=3000 alloc_bytes=1059000 outstanding=0
// expect: frame=victim_recurse allocs>=1000
#include <setjmp.h>
#include <sys/resource.h>

#include "victim.h"

static sigjmp_buf back;
static volatile int sink;

static void handler(int number) {
    (void)number;
    siglongjmp(back, 1);
}
VICTIM static int victim_recurse(int bytes) {
    volatile char room[bytes];
    room[0] = 1;
    free(malloc(24));
    sink = victim_recurse(bytes) + room[0];
    return sink;
}
VICTIM static void victim_after(void) {
    for (int i = 0; i < 100; i++)
        free(malloc(353));
}

int main(void) {
    static char room[65536];
    stack_t alternate = {.ss_sp = room, .ss_size = sizeof room};
    struct rlimit limit = {1 << 20, 1 << 20};
    MUST(setrlimit(RLIMIT_STACK, &limit) == 0);
    MUST(sigaltstack(&alternate, NULL) == 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_NODEFER};
    MUST(sigaction(SIGSEGV, &action, NULL) == 0);
    for (volatile int i = 0; i < 30; i++) {
        if (sigsetjmp(back, 1) == 0)
            victim_recurse(1500 + i * 112);
        victim_after();
    }
    puts("done");
    return 0;
}
