// Fills its heap with ten million blocks, then continues to allocate, and prints its longest delay.
//
//   live_blocks BYTES PAIRS_PER_SECOND        0: as many as it can
//
// Prints "full" when all blocks exist, then a line for each tenth of a second: the longest gap
// between two pairs in ns, and the pairs.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCKS = 10000000 };
static const long TENTH_NS = 100000000;
static void *all[BLOCKS];

static long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

__attribute__((noinline)) static void *leaf(size_t size) { return malloc(size); }

int main(int count, char **arguments) {
    if (count != 3) return 2;
    size_t size = strtoul(arguments[1], NULL, 10);
    long rate = atol(arguments[2]), pause_ns = rate > 0 ? 1000000000L / rate : 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < BLOCKS; i++) all[i] = leaf(size);
    puts("full");
    for (;;) {
        long begin = now_ns(), last = begin, worst = 0, pairs = 0;
        while (last - begin < TENTH_NS) {
            free(leaf(100));
            pairs++;
            long now = now_ns();
            if (now - last > worst) worst = now - last;
            last = now;
            // Spins, because a late wake-up from a sleep would count as a gap.
            while (pause_ns && (now = now_ns()) < begin + pairs * pause_ns) last = now;
        }
        printf("%ld %ld\n", worst, pairs);
    }
}
