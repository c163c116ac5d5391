// Functions without unwind tables and without frame pointers: the stack ends there, the program
// does not crash, and every event counts.
// build: -fno-asynchronous-unwind-tables -fno-unwind-tables -fomit-frame-pointer
// verify: 1
// expect: frame=victim_leaf allocs=1000 alloc_bytes=251000 outstanding=0
#include "victim.h"

VICTIM static void victim_leaf(void) { free(malloc(251)); }
VICTIM static void victim_caller(int depth) {
    if (depth)
        victim_caller(depth - 1);
    else
        victim_leaf();
    errno = depth;
}

int main(void) {
    for (int i = 0; i < 1000; i++)
        victim_caller(i % 30);
    puts("done");
    return 0;
}
