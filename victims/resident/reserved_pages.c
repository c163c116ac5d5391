// Reserved huge pages, which no resident set counts; a message says so if none exist.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 4 << 20 };

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (memory != MAP_FAILED) {
        memset(memory, 1, BYTES);
        printf("reserved %d\n", BYTES);
    }
    puts("ready");
    char line[16];
    return fgets(line, sizeof line, stdin) == NULL;
}
