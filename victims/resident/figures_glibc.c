// Prints glibc malloc's own figures (mallinfo2), for comparison with a reading from outside.
// build: -pthread
#include <malloc.h>

#include "mixed_blocks.h"

static void print_figures(void) {
    struct mallinfo2 info = mallinfo2();
    printf("arena_bytes %zu\nmapped_bytes %zu\nmapped_blocks %zu\n", info.arena, info.hblkhd, info.hblks);
    printf("used_bytes %zu\nfree_bytes %zu\ntop_bytes %zu\n", info.uordblks, info.fordblks, info.keepcost);
}
