// Allocates 10 blocks before main and 1000 in it, of which it frees 500; ends by itself. Nothing else in it allocates.
#include <stdlib.h>

__attribute__((noinline)) static void *flagged_alloc(size_t bytes) { return malloc(bytes); }

__attribute__((constructor)) static void early(void) {
    for (int i = 0; i < 10; i++)
        flagged_alloc(77);
}

int main(void) {
    for (int i = 0; i < 1000; i++) {
        void *block = flagged_alloc(100 + i);
        if (i % 2)
            free(block);
    }
    return 0;
}
