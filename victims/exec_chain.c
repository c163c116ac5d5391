// One process that execs itself five times: six images, each with its own blocks.
// exit: 7
// expect: frame=victim_image allocs=6 alloc_bytes=366 outstanding=6
// expect-processes: 6
#include "victim.h"

VICTIM static void victim_image(void) { MUST(malloc(61) != NULL); }

int main(int count, char **arguments) {
    victim_image();
    int left = count > 1 ? atoi(arguments[1]) : 5;
    if (left == 0) {
        puts("done");
        return 7;
    }
    char next[16];
    snprintf(next, sizeof next, "%d", left - 1);
    execl("/proc/self/exe", arguments[0], next, NULL);
    return 98;
}
