/* As many threads as the argument says allocate, check and free blocks without end; each tenth of a second a line with the
   number of operations since the last. Ends by abort when a block does not hold what was written into it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static atomic_long operations;
static atomic_int is_bad;
static void *work(void *argument) {
    unsigned state = (unsigned)(long)argument * 77 + 1;
    unsigned char *blocks[64] = {0};
    for (;;) {
        state = state * 1103515245 + 12345;
        int i = state >> 16 & 63;
        size_t size = (state >> 8) % 2000 + 1;
        if (blocks[i] && blocks[i][0] != (i ^ 0x5a)) is_bad = 1;
        if (!blocks[i]) {
            blocks[i] = malloc(size);
            blocks[i][0] = i ^ 0x5a;
        } else if (state & 0x10000) {
            blocks[i] = realloc(blocks[i], size);
            blocks[i][0] = i ^ 0x5a;
        } else {
            free(blocks[i]);
            blocks[i] = 0;
        }
        operations++;
    }
    return argument;
}
int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 64;
    setvbuf(stdout, 0, _IONBF, 0);
    for (long i = 0; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, work, (void *)i);
    }
    puts("ready");
    for (long last = 0;;) {
        usleep(100000);
        if (is_bad) abort();
        long now = operations;
        printf("+%ld\n", now - last);
        last = now;
    }
}
