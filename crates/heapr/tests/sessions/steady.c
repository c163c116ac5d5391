// Allocates steadily, keeping the newest 1000 blocks of 100 bytes, until the file argv[1] is there, or its folder is gone with the
// test; then says how many it has made.
// With argv[2]: microseconds of rest after every 100 blocks (0: none).
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT 1000

static void *kept[KEPT];

__attribute__((noinline)) static void *steady_alloc(void) { return malloc(100); }
__attribute__((noinline)) static void *early_alloc(void) { return malloc(5000); }

int main(int count, char **words) {
    long rest_us = count > 2 ? atol(words[2]) : 200;
    long made = 0;
    void *early[10];
    char path[PATH_MAX];
    strncpy(path, words[1], sizeof path - 1);
    path[sizeof path - 1] = 0;
    const char *folder = dirname(path);
    for (int i = 0; i < 10; i++)
        early[i] = early_alloc();
    do {
        for (int i = 0; i < 100; i++) {
            void **place = &kept[made % KEPT];
            free(*place);
            *place = steady_alloc();
            if (*place == NULL)
                return 3;
            made++;
        }
        if (rest_us > 0)
            usleep(rest_us);
    } while ((access(words[1], F_OK) != 0 && (access(folder, F_OK) == 0 || errno != ENOENT)) || made < KEPT);
    printf("%ld %p\n", made, early[9]);
    return 7;
}
