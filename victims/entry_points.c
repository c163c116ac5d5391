// Every allocation entry point of the C library, ten calls each with 100 bytes, every second block freed.
// variant: -O2 -fomit-frame-pointer
// variant: -O0 -fno-omit-frame-pointer
// expect: frame=victim_malloc allocs=10 alloc_bytes=1000 frees=5 outstanding=5 outstanding_bytes=500
// expect: frame=victim_calloc allocs=10 alloc_bytes=1000 frees=5 outstanding=5 outstanding_bytes=500
// expect: frame=victim_realloc allocs=10 alloc_bytes=1000 frees=5 outstanding=5 outstanding_bytes=500
// expect: frame=victim_reallocarray allocs=10 alloc_bytes=1000 frees=5 outstanding=5 outstanding_bytes=500
// expect: frame=victim_posix_memalign allocs=10 alloc_bytes=1000 frees=5 outstanding=5 outstanding_bytes=500
// expect: frame=victim_aligned_alloc allocs=10 alloc_bytes=1280 frees=5 outstanding=5 outstanding_bytes=640
// expect: frame=victim_memalign allocs=10 alloc_bytes=1000 frees=5 outstanding=5 outstanding_bytes=500
// expect: frame=victim_valloc allocs=10 alloc_bytes=1000 frees=5 outstanding=5 outstanding_bytes=500
// expect: frame=victim_pvalloc allocs=10 alloc_bytes=1000 frees=5 outstanding=5 outstanding_bytes=500
// expect: frame=victim_other_frees allocs=10 alloc_bytes=1280 frees=10 outstanding=0
// expect-stack: victim_malloc <- main allocs=10
#include <dlfcn.h>
#include <malloc.h>

#include "victim.h"

static void *kept[16][10];
static int rows;

VICTIM static void *victim_malloc(void) { return malloc(100); }
VICTIM static void *victim_calloc(void) { return calloc(4, 25); }
VICTIM static void *victim_realloc(void) { return realloc(NULL, 100); }
VICTIM static void *victim_reallocarray(void) { return reallocarray(NULL, 25, 4); }
VICTIM static void *victim_posix_memalign(void) {
    void *block = NULL;
    MUST(posix_memalign(&block, 64, 100) == 0);
    return block;
}
VICTIM static void *victim_aligned_alloc(void) { return aligned_alloc(64, 128); }
VICTIM static void *victim_memalign(void) { return memalign(32, 100); }
VICTIM static void *victim_valloc(void) { return valloc(100); }
VICTIM static void *victim_pvalloc(void) { return pvalloc(100); }

// Calls cfree, which left glibc in 2.26, or free_sized and free_aligned_sized, which came in 2.43;
// free if neither exists.
VICTIM static void victim_other_frees(void) {
    void (*cfree_here)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "cfree");
    void (*free_sized_here)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    void (*free_aligned_sized_here)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    for (int i = 0; i < 10; i++) {
        void *block = aligned_alloc(64, 128);
        if (i % 4 == 0 && cfree_here)
            cfree_here(block);
        else if (i % 4 == 2 && free_aligned_sized_here)
            free_aligned_sized_here(block, 64, 128);
        else if (i % 4 == 3 && free_sized_here) {
            free_sized_here(block, 128);
        } else
            free(block);
    }
}

int main(void) {
    void *(*calls[])(void) = {victim_malloc,         victim_calloc,        victim_realloc,
                              victim_reallocarray,   victim_posix_memalign, victim_aligned_alloc,
                              victim_memalign,       victim_valloc,        victim_pvalloc};
    for (; rows < 9; rows++)
        for (int i = 0; i < 10; i++) {
            kept[rows][i] = calls[rows]();
            MUST(kept[rows][i] != NULL);
            memset(kept[rows][i], 1, 100);
            if (i % 2)
                free(kept[rows][i]);
        }
    victim_other_frees();
    puts("done");
    return 0;
}
