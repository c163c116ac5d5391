// RLIMIT_AS is reached: calls fail as without heapr, existing blocks stay, and after frees there is
// room again.
// expect: frame=victim_fill allocs>=1 outstanding=0
// expect: frame=victim_after allocs=1000 alloc_bytes=149000 outstanding=1000
// expect: frame=victim_failing allocs=0
#include <sys/resource.h>

#include "victim.h"

static void *blocks[100000];

VICTIM static int victim_fill(void) {
    int count = 0;
    while (count < 100000 && (blocks[count] = malloc(1 << 20)))
        count++;
    while (count < 100000 && (blocks[count] = malloc(4096)))
        count++;
    return count;
}
VICTIM static void victim_failing(void) {
    for (int i = 0; i < 100; i++)
        MUST(malloc(1 << 22) == NULL && errno == ENOMEM);
}
VICTIM static void victim_after(void) {
    for (int i = 0; i < 1000; i++)
        MUST(malloc(149) != NULL);
}

int main(void) {
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_AS, &limit) == 0);
    // Room for heapr's own mappings, and 64 MiB more.
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    MUST(file && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    limit.rlim_cur = (rlim_t)pages * 4096 + (64 << 20);
    MUST(setrlimit(RLIMIT_AS, &limit) == 0);
    int count = victim_fill();
    victim_failing();
    for (int i = 0; i < count; i++)
        free(blocks[i]);
    victim_after();
    puts("done");
    return 0;
}
