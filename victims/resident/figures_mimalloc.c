// Prints the usable size of the blocks on mimalloc's heap, by mimalloc's own figures, for
// comparison with a reading from outside.
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
