// vfork and exec, five times: the child runs on the parent's memory until it execs. Both are
// traced, the parent also afterwards.
// expect: frame=victim_parent allocs=10 alloc_bytes=410 outstanding=10
// expect: frame=victim_child allocs=15 alloc_bytes=645 outstanding=15
// expect-processes: 6
#include <sys/wait.h>

#include "victim.h"

VICTIM static void victim_parent(void) { MUST(malloc(41) != NULL); }
VICTIM static void victim_child(void) {
    for (int i = 0; i < 3; i++)
        MUST(malloc(43) != NULL);
}

int main(int count, char **arguments) {
    if (count > 1) {
        victim_child();
        return 3;
    }
    for (int i = 0; i < 5; i++) {
        victim_parent();
        pid_t child = vfork();
        if (child == 0) {
            execl("/proc/self/exe", arguments[0], "child", NULL);
            _exit(98);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
        victim_parent();
    }
    puts("done");
    return 0;
}
