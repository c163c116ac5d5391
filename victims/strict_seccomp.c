// Strict seccomp: only read, write, exit and sigreturn from there on, and no time stamp counter.
// Recording ends, the program does not.
// expect: frame=victim_before allocs=1000 alloc_bytes=191000 outstanding=0
// notice: forbidden itself
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "victim.h"

VICTIM static void victim_before(void) {
    for (int i = 0; i < 1000; i++)
        free(malloc(191));
}

VICTIM static void victim_after(void) {
    for (int i = 0; i < 100000; i++) {
        char *block = malloc(191);
        block = realloc(block, 300);
        free(block);
    }
}

int main(void) {
    puts("done");
    fflush(stdout);
    free(malloc(300));
    victim_before();
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    victim_after();
    syscall(SYS_exit, 0);
}
