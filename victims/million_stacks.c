// 1,048,576 distinct stacks: every path through a binary tree of two functions, twenty calls deep.
// seconds: 120
// verify: 64
// report: frames
// expect: frame=victim_leaf allocs=1048576 alloc_bytes=248512512 outstanding=0
#include "victim.h"

VICTIM static void victim_leaf(void) { free(malloc(237)); }
VICTIM static void left(int depth);
VICTIM static void right(int depth);
VICTIM static void left(int depth) {
    if (depth == 0) {
        victim_leaf();
    } else {
        left(depth - 1);
        right(depth - 1);
    }
    errno = 1;
}
VICTIM static void right(int depth) {
    if (depth == 0) {
        victim_leaf();
    } else {
        left(depth - 1);
        right(depth - 1);
    }
    errno = 2;
}

// An argument makes the tree smaller.
int main(int count, char **arguments) {
    int depth = count > 1 ? atoi(arguments[1]) : 19;
    left(depth);
    right(depth);
    puts("done");
    return 0;
}
