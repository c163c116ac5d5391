// Functions whose unwind tables are in .debug_frame alone, which the loader does not map, and a
// program without the header that locates .eh_frame: the stacks reach main all the same.
// build: -g -fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables
// variant: -O2 -fomit-frame-pointer -fasynchronous-unwind-tables -Wl,--no-eh-frame-hdr
// expect-stack: victim_leaf <- victim_middle <- victim_outer <- main allocs=300 alloc_bytes=75300 outstanding=0
#include "victim.h"

VICTIM static void victim_leaf(int number) {
    char bytes[200];
    memset(bytes, number, sizeof bytes);
    free(malloc(251));
    errno = bytes[number];
}
VICTIM static void victim_middle(int number) {
    char bytes[64];
    memset(bytes, number, sizeof bytes);
    victim_leaf(number);
    errno = bytes[number];
}
VICTIM static void victim_outer(int number) {
    int words[number + 3];
    words[number] = number;
    victim_middle(words[number]);
    errno = words[number];
}

int main(void) {
    for (int i = 0; i < 300; i++)
        victim_outer(i % 50);
    puts("done");
    return 0;
}
