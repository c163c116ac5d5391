/* For each line on standard input: a fixed number of calls of each kind, then "done". Between them it waits in read.
   malloc 1000 (10 kept), by a pointer taken at the start 50, calloc 20, realloc 30 of NULL and 30 that grow, memalign kin 40,
   strdup 25, reallocarray 15. Allocations: 1000 + 50 + 20 + 30 + 40 + 25 + 15 = 1180; outstanding: 10.
   One block is allocated at the start and kept. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    void *(*taken)(size_t) = malloc;
    char line[64];
    volatile double sum = 1.0;
    setvbuf(stdout, 0, _IONBF, 0);
    if (!malloc(8)) return 1;
    puts("ready");
    for (;;) {
        ssize_t count = read(0, line, sizeof line);
        if (count <= 0) return 0;
        for (int i = 0; i < 1000; i++) { void *p = malloc(100); if (i >= 10) free(p); }
        for (int i = 0; i < 50; i++) { void *p = taken(60); free(p); }
        for (int i = 0; i < 20; i++) { void *p = calloc(3, 9); free(p); }
        for (int i = 0; i < 30; i++) { void *p = realloc(0, 70); p = realloc(p, 5000); free(p); }
        for (int i = 0; i < 10; i++) {
            void *p;
            if (posix_memalign(&p, 64, 100)) return 1;
            free(p);
            p = aligned_alloc(16, 64); free(p);
            p = memalign(8, 64); free(p);
            p = valloc(100); free(p);
        }
        for (int i = 0; i < 25; i++) { char *p = strdup("a text"); free(p); }
        for (int i = 0; i < 15; i++) { void *p = reallocarray(0, 5, 7); free(p); }
        sum = sum * 1.5 + 2.0;
        write(1, "done\n", 5);
    }
}
