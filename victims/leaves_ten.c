// Leaks ten blocks of 1 MiB; with an argument that begins with `_` it ends by _exit. With `both` it
// waits, in the folder where it runs, until another instance has its blocks, too.
// build:
// expect: frame=victim_leave allocs=10 alloc_bytes=10485760 outstanding=10
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) void *victim_leave(void) {
    char *block = malloc(1 << 20);
    memset(block, 1, 1 << 20);
    return block;
}

void *volatile kept[10];

int main(int count, char **arguments) {
    for (int i = 0; i < 10; i++)
        kept[i] = victim_leave();
    if (count > 1 && arguments[1][0] == '_')
        _exit(0);
    if (count > 1 && !strcmp(arguments[1], "both")) {
        int own = open("first", O_CREAT | O_EXCL, 0600) >= 0 ? 0 : 1;
        const char *names[] = {"there-0", "there-1"};
        close(open(names[own], O_CREAT, 0600));
        for (int i = 0; access(names[1 - own], F_OK) && i < 60000; i++)
            usleep(1000);
        // An event now and then: the last one shows when the program ended.
        free(malloc(10));
    }
    return 0;
}
