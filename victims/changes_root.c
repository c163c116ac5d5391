// chroot into an empty directory without /proc: known code is still recorded.
// needs: root
// expect: frame=victim_after allocs=50000 alloc_bytes=8950000 outstanding=0
// expect: frame=victim_child allocs=100 alloc_bytes=18100 outstanding=100
// expect-processes: 2
#include <sys/wait.h>

#include "victim.h"

VICTIM static void victim_after(void) {
    for (int i = 0; i < 50000; i++)
        free(malloc(179));
}
VICTIM static void victim_child(void) {
    for (int i = 0; i < 100; i++)
        MUST(malloc(181) != NULL);
}

int main(void) {
    char folder[] = "/tmp/victim-chroot-XXXXXX";
    MUST(mkdtemp(folder) != NULL);
    MUST(chdir(folder) == 0 && rmdir(folder) == 0 && chroot(".") == 0);
    victim_after();
    if (fork() == 0) {
        victim_child();
        _exit(0);
    }
    MUST(wait(NULL) > 0);
    puts("done");
    return 0;
}
