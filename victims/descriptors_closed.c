// The program closes all descriptors from 3 up and opens them again as its own: the recording
// continues and uses none of them.
// verify: 16
// expect: frame=victim_after allocs=200000 alloc_bytes=30200000 outstanding=0
#include <fcntl.h>
#include <sys/resource.h>

#include "victim.h"

VICTIM static void victim_after(void) {
    for (int i = 0; i < 200000; i++)
        free(malloc(151));
}

int main(void) {
    for (int descriptor = 3; descriptor < 4096; descriptor++)
        close(descriptor);
    int mine[50];
    for (int i = 0; i < 50; i++) {
        mine[i] = open("/dev/null", O_RDONLY);
        MUST(mine[i] == 3 + i);
    }
    victim_after();
    char letter;
    for (int i = 0; i < 50; i++)
        MUST(read(mine[i], &letter, 1) == 0 && close(mine[i]) == 0);
    MUST(open("/dev/null", O_RDONLY) == 3);
    puts("done");
    return 0;
}
