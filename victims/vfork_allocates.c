// A vfork child that allocates and frees on its parent's memory before it execs or ends: the blocks
// are the parent's, whose own state stays intact.
// expect: frame=victim_in_child allocs=60 alloc_bytes=20820 outstanding=20
// expect: frame=victim_parent allocs=2000 alloc_bytes=698000 outstanding=0
#include <sys/wait.h>

#include "victim.h"

static void *from_child;

VICTIM static void victim_in_child(void) {
    free(malloc(347));
    free(malloc(347));
    from_child = malloc(347);
}
VICTIM static void victim_parent(void) {
    for (int i = 0; i < 100; i++)
        free(malloc(349));
}

int main(void) {
    for (int i = 0; i < 20; i++) {
        pid_t child = vfork();
        if (child == 0) {
            victim_in_child();
            if (i % 2)
                execl("/bin/true", "true", NULL);
            _exit(0);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child && status == 0);
        MUST(from_child != NULL);
        victim_parent();
    }
    puts("done");
    return 0;
}
