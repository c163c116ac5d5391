// Recursion to a depth of 10,000, with blocks at the bottom and at every hundredth level on the way back.
// variant: -O2 -fomit-frame-pointer
// expect: frame=victim_bottom allocs=100 alloc_bytes=21100
// expect: frame=victim_descend allocs=200 alloc_bytes=43400
// expect-stack: victim_bottom <- victim_descend <- victim_descend allocs=100
#include "victim.h"

VICTIM static void victim_bottom(void) {
    for (int i = 0; i < 100; i++)
        MUST(malloc(211) != NULL);
}
VICTIM static int victim_descend(int depth) {
    if (depth == 0) {
        victim_bottom();
        return 0;
    }
    int below = victim_descend(depth - 1);
    if (depth % 100 == 0)
        MUST(malloc(223) != NULL);
    return below + 1;
}

int main(void) {
    MUST(victim_descend(10000) == 10000);
    puts("done");
    return 0;
}
