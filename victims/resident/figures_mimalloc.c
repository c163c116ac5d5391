// What the blocks on mimalloc's heap can hold, as mimalloc itself says of each, to be compared with
// what is read from outside.
// needs: mimalloc.h libmimalloc.so
// build: -lmimalloc -pthread
#include <mimalloc.h>

#include "mixed_blocks.h"

static void print_figures(void) {
    size_t bytes = 0;
    for (int at = 0; at < BLOCKS; at += 3) bytes += mi_usable_size(blocks[at]);
    for (int at = 1; at < LARGE; at += 2) bytes += mi_usable_size(large[at]);
    printf("allocated %zu\n", bytes);
}
