// A library with a hidden allocator of jemalloc's interface, for inner_in_library.c.
#include <stddef.h>

#define INSIDE __attribute__((noinline, noclone, visibility("hidden"), used))

static char pool[1 << 20];
static size_t used;

INSIDE void *je_malloc(size_t bytes) { used += (bytes + 15) & ~(size_t)15; return pool + used - ((bytes + 15) & ~(size_t)15); }
INSIDE void je_free(void *block) { __asm__ volatile("" : : "r"(block) : "memory"); }
INSIDE void je_sdallocx(void *block, size_t bytes, int flags) { (void)bytes; if (!flags) je_free(block); }

__attribute__((noinline, constructor)) static void victim_constructs(void) {
    for (int number = 0; number < 5; number++) {
        void *volatile block = je_malloc(100);
        (void)block;
    }
}
__attribute__((noinline)) void victim_in_library(int number) {
    void *volatile block = je_malloc(100);
    if (number % 3 == 0) je_sdallocx(block, 100, 0);
}
