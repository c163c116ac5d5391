// _exit without any handler: all recorded events are in the file.
// exit: 5
// expect: frame=victim_known allocs=100000 alloc_bytes=19300000 outstanding=100000 peak_bytes=19300000
#include "victim.h"

VICTIM static void victim_known(void) {
    for (int i = 0; i < 100000; i++)
        MUST(malloc(193) != NULL);
}

int main(void) {
    victim_known();
    _exit(5);
}
