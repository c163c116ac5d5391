// Blocks of many sizes, of which two of three are freed, some by an ended thread, as a test of an
// allocator's books. Then the program waits for a line on its input.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 60000, LARGE = 24 };
static char *blocks[BLOCKS];
static char *large[LARGE];

static void *make_blocks(void *number) {
    unsigned at_random = 12345 + (unsigned)(long)number;
    for (long at = (long)number; at < BLOCKS; at += 2) {
        at_random = at_random * 1103515245 + 12345;
        size_t size = 8 + (at_random >> 8) % (at % 50 == 0 ? 30000 : 900);
        blocks[at] = malloc(size);
        memset(blocks[at], 1, size);
    }
    return NULL;
}

// Prints what the allocator says of itself, as "KIND BYTES".
static void print_figures(void);

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, make_blocks, (void *)1);
    make_blocks(NULL);
    pthread_join(thread, NULL);
    for (int at = 0; at < LARGE; at++) {
        size_t size = 40000 + 300000 * (size_t)at;
        large[at] = malloc(size);
        memset(large[at], 1, size / 2);
    }
    for (int at = 0; at < BLOCKS; at++) {
        if (at % 3 != 0) free(blocks[at]);
    }
    for (int at = 0; at < LARGE; at += 2) free(large[at]);
    puts("begins 0");
    print_figures();
    puts("ready");
    char line[16];
    return fgets(line, sizeof line, stdin) == NULL;
}
