// realloc in all its forms: from nothing, to nothing, in place, moved, smaller; a realloc makes a new block at its own stack.
// expect: frame=victim_from_null allocs=8 alloc_bytes=128 outstanding=0 reallocs=0
// expect: frame=victim_grow allocs=8 alloc_bytes=32768 outstanding=0 reallocs=8
// expect: frame=victim_shrink allocs=8 alloc_bytes=80 outstanding=8 outstanding_bytes=80 reallocs=8
// expect: frame=victim_to_zero allocs=8 alloc_bytes=192 outstanding=0 reallocs=0
// expect: frame=victim_move allocs=24 alloc_bytes=8019200 frees=16 outstanding=8 outstanding_bytes=8000000 reallocs=8
#include "victim.h"

VICTIM static char *victim_from_null(void) { return realloc(NULL, 16); }
VICTIM static char *victim_grow(char *block) { return realloc(block, 4096); }
VICTIM static char *victim_shrink(char *block) { return realloc(block, 10); }
VICTIM static void victim_to_zero(void) {
    char *block = malloc(24);
    MUST(realloc(block, 0) == NULL);
}
// A neighbour follows the block, so that growing must move it.
VICTIM static void victim_move(void) {
    char *block = malloc(1200);
    char *neighbour = malloc(1200);
    memset(block, 7, 1200);
    char *moved = realloc(block, 1000000);
    MUST(moved != NULL && moved[1199] == 7);
    free(neighbour);
}

int main(void) {
    for (int i = 0; i < 8; i++) {
        char *block = victim_from_null();
        strcpy(block, "kept");
        block = victim_grow(block);
        MUST(strcmp(block, "kept") == 0);
        block = victim_shrink(block);
        MUST(strcmp(block, "kept") == 0);
        victim_to_zero();
        victim_move();
    }
    puts("done");
    return 0;
}
