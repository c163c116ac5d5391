// abort: all recorded events are in the file, and the signal is the status.
// exit: 134
// expect: frame=victim_known allocs=100000 alloc_bytes=19700000 outstanding=100000 peak_bytes=19700000
#include "victim.h"

VICTIM static void victim_known(void) {
    for (int i = 0; i < 100000; i++)
        MUST(malloc(197) != NULL);
}

int main(void) {
    victim_known();
    abort();
}
