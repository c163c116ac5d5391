// The program execs itself with a new environment of its own: the new image is traced all the same.
// expect: frame=victim_image allocs=2 alloc_bytes=622 outstanding=2
// expect-processes: 2
#include "victim.h"

VICTIM static void victim_image(void) { MUST(malloc(311) != NULL); }

int main(int count, char **arguments) {
    victim_image();
    if (count > 1) {
        puts("done");
        return 0;
    }
    char *environment[] = {"LANG=C", NULL};
    char *next[] = {arguments[0], "again", NULL};
    execve("/proc/self/exe", next, environment);
    return 98;
}
