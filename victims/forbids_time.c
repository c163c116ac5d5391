// The program forbids itself the time stamp counter: recording ends, but neither the program nor
// its forked child does. (glibc's loader, which reads the counter, ends a program that it would
// exec.)
// expect: frame=victim_before allocs=2000 alloc_bytes=382000 outstanding=0
// notice: forbidden itself
#include <sys/prctl.h>
#include <sys/wait.h>

#include "victim.h"

VICTIM static void victim_before(void) {
    for (int i = 0; i < 1000; i++)
        free(malloc(191));
}

VICTIM static void victim_after(const char *who) {
    for (int i = 0; i < 1000; i++)
        free(malloc(191));
    MUST(write(1, who, strlen(who)) > 0);
}

int main(void) {
    victim_before();
    MUST(prctl(PR_SET_TSC, PR_TSC_ENABLE) == 0);
    victim_before();
    MUST(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
    victim_after("itself\n");
    pid_t child = fork();
    if (child == 0) {
        victim_after("forked\n");
        execl("/no/such/program", "no", (char *)NULL);
        _exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
