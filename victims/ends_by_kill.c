// SIGKILL in mid-stream: all events before it are in the file, to the last one.
// exit: 137
// expect: frame=victim_known allocs=100000 alloc_bytes=19900000 outstanding=100000 peak_bytes=19900000
#include "victim.h"

VICTIM static void victim_known(void) {
    for (int i = 0; i < 100000; i++)
        MUST(malloc(199) != NULL);
}

int main(void) {
    victim_known();
    kill(getpid(), SIGKILL);
    return 0;
}
