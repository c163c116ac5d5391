// Children that share memory without being threads: by clone with CLONE_VM, with CLONE_VFORK or
// shared descriptors, and posix_spawn's helper. Their allocations count as the program's. The first
// call of all is a child's.
// expect: frame=victim_child allocs=4000 alloc_bytes=240000 outstanding=2000
// expect-unmatched: 0
#define _GNU_SOURCE
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>

#include "victim.h"

extern char **environ;
static char stack[64 << 10];

VICTIM static void victim_child(void) {
    for (int i = 0; i < 100; i++) {
        void *volatile block = malloc(60);
        if (i % 2) free(block);
    }
}

static int begin(void *argument) {
    (void)argument;
    victim_child();
    return 0;
}

static void wait_for(pid_t pid) {
    int status;
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static void spawn(void) {
    char *arguments[] = {"true", NULL};
    pid_t pid;
    MUST(posix_spawnp(&pid, "true", NULL, NULL, arguments, environ) == 0);
    wait_for(pid);
    victim_child();
}

int main(void) {
    const int flags[] = {CLONE_VM, CLONE_VM | CLONE_VFORK, CLONE_VM | CLONE_FILES | CLONE_FS};
    for (int i = 0; i < 10; i++) {
        for (int kind = 0; kind < 3; kind++) wait_for(clone(begin, stack + sizeof stack, flags[kind] | SIGCHLD, NULL));
        spawn();
    }
    puts("done");
    return 0;
}
