// Four forked children that free what their parent allocated (no unmatched free) and allocate on
// their own; 20 bytes are leaked in each.
// expect: frame=victim_parent allocs=100 alloc_bytes=5000 outstanding=100
// expect: frame=victim_child allocs=400 alloc_bytes=8000 frees=396 outstanding=4 outstanding_bytes=80
// expect-processes: 5
// expect-unmatched: 0
#include <sys/wait.h>

#include "victim.h"

static void *inherited[100];

VICTIM static void victim_parent(void) {
    for (int i = 0; i < 100; i++)
        inherited[i] = malloc(50);
}
VICTIM static void victim_child(void) {
    for (int i = 0; i < 100; i++)
        free(inherited[i]);
    void *last = NULL;
    for (int i = 0; i < 100; i++) {
        free(last);
        last = malloc(20);
    }
}

int main(void) {
    victim_parent();
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            victim_child();
            _exit(i);
        }
    int sum = 0, status;
    while (wait(&status) > 0)
        sum += WEXITSTATUS(status);
    MUST(sum == 6);
    puts("done");
    return 0;
}
