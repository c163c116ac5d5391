// Prints jemalloc's own figures (mallctl), for comparison with a reading from outside.
// needs: jemalloc/jemalloc.h libjemalloc.so
// build: -ljemalloc -pthread
#include <jemalloc/jemalloc.h>

#include "mixed_blocks.h"

static void figure(const char *kind, const char *name) {
    size_t bytes = 0, length = sizeof bytes;
    if (mallctl(name, &bytes, &length, NULL, 0) != 0) exit(99);
    printf("%s %zu\n", kind, bytes);
}

static void print_figures(void) {
    unsigned long long epoch = 1;
    if (mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) != 0) exit(99);
    figure("allocated", "stats.allocated");
    figure("active", "stats.active");
    figure("metadata", "stats.metadata");
    figure("resident", "stats.resident");
}
