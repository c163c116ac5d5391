// Calls that fail make no block; calls with size zero do; free(NULL) is not an event.
// expect: frame=victim_too_large allocs=0
// expect: frame=victim_calloc_overflow allocs=0
// expect: frame=victim_bad_alignment allocs=0
// expect: frame=victim_realloc_fails allocs=10 alloc_bytes=500 outstanding=10 outstanding_bytes=500 reallocs=0
// expect: frame=victim_zero allocs=20 alloc_bytes=0 frees=10 outstanding=10
// expect: frame=victim_free_null allocs=0
#include "victim.h"

static volatile size_t half = SIZE_MAX / 2;

VICTIM static void victim_too_large(void) {
    errno = 0;
    MUST(malloc(half + 5) == NULL && errno == ENOMEM);
    errno = 0;
    MUST(realloc(NULL, half + 5) == NULL && errno == ENOMEM);
    errno = 0;
    MUST(reallocarray(NULL, half, 4) == NULL && errno == ENOMEM);
    errno = 0;
    MUST(aligned_alloc(64, half + 65) == NULL && errno == ENOMEM);
}
VICTIM static void victim_calloc_overflow(void) {
    errno = 0;
    MUST(calloc(half, 4) == NULL && errno == ENOMEM);
}
VICTIM static void victim_bad_alignment(void) {
    void *block = (void *)7;
    MUST(posix_memalign(&block, 3, 100) == EINVAL && block == (void *)7);
}
VICTIM static void victim_realloc_fails(void) {
    char *block = malloc(50);
    memset(block, 42, 50);
    errno = 0;
    MUST(realloc(block, half + 5) == NULL && errno == ENOMEM);
    MUST(reallocarray(block, half, 4) == NULL);
    for (int i = 0; i < 50; i++)
        MUST(block[i] == 42);
}
VICTIM static void victim_zero(void) {
    MUST(malloc(0) != NULL);
    free(calloc(0, 8));
}
VICTIM static void victim_free_null(void) { free(NULL); }

int main(void) {
    for (int i = 0; i < 10; i++) {
        victim_too_large();
        victim_calloc_overflow();
        victim_bad_alignment();
        victim_realloc_fails();
        victim_zero();
        victim_free_null();
    }
    puts("done");
    return 0;
}
