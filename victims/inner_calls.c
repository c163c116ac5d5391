// An allocator whose functions call one another by name, with other sizes and addresses: each call of the program is one allocation.
// library: inner_calls.c -DLIBRARY as liballocator.so
// build: {folder}/liballocator.so
// expect: frame=victim_malloc allocs=10 alloc_bytes=1010 outstanding=0
// expect: frame=victim_calloc allocs=10 alloc_bytes=2020 outstanding=0
// expect: frame=victim_realloc allocs=20 alloc_bytes=4040 reallocs=10 outstanding=0
// expect: frame=victim_reallocarray allocs=10 alloc_bytes=3030 outstanding=10
// expect: frame=victim_memalign allocs=10 alloc_bytes=1070 outstanding=0
// expect: frame=victim_posix_memalign allocs=10 alloc_bytes=1090 outstanding=0
// expect: frame=victim_strdup allocs=10 alloc_bytes=70 outstanding=0
// expect: frame=victim_in_the_library allocs=10 alloc_bytes=1310 outstanding=10
// expect-stack: calloc <- victim_calloc <- main allocs=10
// expect-stack: posix_memalign <- victim_posix_memalign <- main allocs=10
// expect-stack: malloc <- strdup <- victim_strdup <- main allocs=10
#include <malloc.h>

#include "victim.h"

#ifdef LIBRARY
#include <stdint.h>

// Header before each block: its size, and the address that malloc returned.
struct head {
    size_t size;
    void *whole;
};

static char arena[16 << 20];
static size_t arena_used;
static int is_logging;

void *malloc(size_t size) {
    if (!is_logging) {
        // Blocks that the C library allocates for the allocator are not the program's.
        is_logging = 1;
        FILE *log = fopen("/dev/null", "w");
        fputs("begun\n", log);
        is_logging = 2;
    }
    size_t at = (arena_used + sizeof(struct head) + 15) & ~(size_t)15;
    if (at + size > sizeof arena)
        return NULL;
    arena_used = at + size;
    *(struct head *)(arena + at - sizeof(struct head)) = (struct head){size, NULL};
    return arena + at;
}
void free(void *block) {
    if (block) {
        struct head *head = (struct head *)block - 1;
        head->size = 0;
        if (head->whole)
            free(head->whole);
    }
}
void *calloc(size_t count, size_t size) {
    char *whole = malloc(count * size + sizeof(struct head));
    *(struct head *)whole = (struct head){count * size, whole};
    return memset(whole + sizeof(struct head), 0, count * size);
}
void *memalign(size_t alignment, size_t size) {
    char *whole = malloc(size + alignment + sizeof(struct head));
    uintptr_t at = ((uintptr_t)whole + sizeof(struct head) + alignment - 1) & ~(alignment - 1);
    ((struct head *)at)[-1] = (struct head){size, whole};
    return (void *)at;
}
int posix_memalign(void **answer, size_t alignment, size_t size) {
    *answer = memalign(alignment, size);
    return 0;
}
void *realloc(void *block, size_t size) {
    void *fresh = malloc(size);
    if (block) {
        size_t old = ((struct head *)block)[-1].size;
        memcpy(fresh, block, old < size ? old : size);
        free(block);
    }
    return fresh;
}
void *reallocarray(void *block, size_t count, size_t size) { return realloc(block, count * size); }
// Other functions of the library do not belong to the allocator.
VICTIM void *victim_in_the_library(void) { return malloc(131); }
#else
void *victim_in_the_library(void);
VICTIM static void victim_malloc(void) { free(malloc(101)); }
VICTIM static void victim_calloc(void) { free(calloc(2, 101)); }
VICTIM static void victim_realloc(void) { free(realloc(realloc(NULL, 101), 303)); }
VICTIM static void victim_reallocarray(void) { MUST(reallocarray(NULL, 3, 101)); }
VICTIM static void victim_memalign(void) { free(memalign(64, 107)); }
VICTIM static void victim_posix_memalign(void) {
    void *block;
    MUST(posix_memalign(&block, 64, 109) == 0);
    free(block);
}
VICTIM static void victim_strdup(void) { free(strdup("sixsix")); }

int main(void) {
    for (int i = 0; i < 10; i++) {
        victim_malloc();
        victim_calloc();
        victim_realloc();
        victim_reallocarray();
        victim_memalign();
        victim_posix_memalign();
        victim_strdup();
        MUST(victim_in_the_library());
    }
    puts("done");
    return 0;
}
#endif
