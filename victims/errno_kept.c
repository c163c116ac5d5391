// errno stays as the program set it, whatever is recorded meanwhile: enough events to fill buffers
// and claim new ones.
// expect: frame=victim_events allocs=300000 alloc_bytes=9600000 outstanding=0
// verify: 64
#include "victim.h"

VICTIM static void victim_events(void) {
    for (int i = 0; i < 300000; i++) {
        errno = 77;
        void *block = malloc(32);
        MUST(errno == 77);
        free(block);
        MUST(errno == 77);
    }
}

int main(void) {
    victim_events();
    puts("done");
    return 0;
}
