// A static program: it has no loader, and is recorded from outside before its own code runs.
// build: -static
// exit: 4
// expect: frame=victim_take allocs=100 alloc_bytes=4950 outstanding=50
// expect-stack: victim_take <- main allocs=100
#include "victim.h"

__attribute__((noinline)) static void *victim_take(size_t bytes) {
    void *block = malloc(bytes);
    __asm__ volatile("" ::: "memory");
    return block;
}

int main(void) {
    for (int number = 0; number < 100; number++) {
        void *block = victim_take(number);
        if (number % 2) free(block);
    }
    puts("done");
    return 4;
}
