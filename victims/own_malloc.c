// A program with an allocator in its executable, which passes large calls to the C library's: each
// call counts once.
// build: -ldl
// expect: frame=victim_takes allocs=200 alloc_bytes=20100000 outstanding=0
// expect-unmatched: 0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/mman.h>

#include "victim.h"

#define LARGE 100000

static char *pool;
static size_t pool_bytes_used;
static void *(*next_malloc)(size_t);
static void (*next_free)(void *);

void *malloc(size_t bytes) {
    if (bytes >= LARGE && next_malloc)
        return next_malloc(bytes);
    if (!pool)
        pool = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *block = pool + pool_bytes_used;
    pool_bytes_used += (bytes + 15) / 16 * 16;
    return block;
}

void free(void *block) {
    if (block && ((char *)block < pool || (char *)block >= pool + (64 << 20)))
        next_free(block);
}

void *calloc(size_t count, size_t bytes) {
    return malloc(count * bytes);
}

void *realloc(void *old, size_t bytes) {
    char *block = malloc(bytes);
    if (old)
        memmove(block, old, bytes);
    return block;
}

VICTIM static void victim_takes(void) {
    free(malloc(1000));
    free(malloc(200000));
}

int main(void) {
    next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    MUST(next_malloc && next_free);
    for (int i = 0; i < 100; i++)
        victim_takes();
    puts("done");
    return 0;
}
