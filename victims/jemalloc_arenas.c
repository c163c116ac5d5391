// Arenas of jemalloc that are destroyed or reset, by name and by number: only their own blocks end
// with them.
// needs: jemalloc/jemalloc.h libjemalloc.so
// build: -ljemalloc
// expect: frame=victim_in_arena allocs=2600 outstanding=0
// expect: frame=victim_beside allocs=100 alloc_bytes=10300 outstanding=100
// expect: frame=victim_moved_out allocs=200 outstanding=100
// expect: frame=victim_refused allocs=1 outstanding=1
// expect-unmatched: 0
#include <jemalloc/jemalloc.h>

#include "victim.h"

VICTIM static void victim_in_arena(unsigned arena) {
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
    for (size_t i = 0; i < 10; i++)
        MUST(mallocx(101 + i, flags));
    void *volatile gone = mallocx(64, flags);
    dallocx(gone, flags);
    MUST(rallocx(mallocx(64, flags), 70000, flags));
}
VICTIM static void *victim_beside(void) { return malloc(103); }

VICTIM static void victim_moved_out(unsigned arena) {
    MUST(rallocx(mallocx(64, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE), 70000, MALLOCX_TCACHE_NONE));
}
VICTIM static void victim_refused(void) {
    unsigned read;
    size_t bytes = sizeof read;
    MUST(mallocx(64, MALLOCX_ARENA(0) | MALLOCX_TCACHE_NONE));
    MUST(mallctl("arena.0.reset", &read, &bytes, NULL, 0) != 0);
}

static void *volatile kept[100];

int main(void) {
    size_t destroy[3], reset[3], words = 3;
    MUST(mallctlnametomib("arena.0.destroy", destroy, &words) == 0 && words == 3);
    MUST(mallctlnametomib("arena.0.reset", reset, &words) == 0 && words == 3);
    victim_refused();
    for (int i = 0; i < 100; i++) {
        unsigned arena = 0;
        size_t bytes = sizeof arena;
        MUST(mallctl("arenas.create", &arena, &bytes, NULL, 0) == 0);
        kept[i] = victim_beside();
        char name[64];
        victim_in_arena(arena);
        snprintf(name, sizeof name, "arena.%u.reset", arena);
        reset[1] = destroy[1] = arena;
        MUST((i % 2 ? mallctl(name, NULL, NULL, NULL, 0) : mallctlbymib(reset, 3, NULL, NULL, NULL, 0)) == 0);
        victim_in_arena(arena);
        victim_moved_out(arena);
        snprintf(name, sizeof name, "arena.%u.destroy", arena);
        MUST((i % 2 ? mallctlbymib(destroy, 3, NULL, NULL, NULL, 0) : mallctl(name, NULL, NULL, NULL, 0)) == 0);
    }
    puts("done");
    return 0;
}
