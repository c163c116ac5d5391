// Children that the C library's fork handlers do not see: by _Fork, clone, the system calls clone,
// clone3 and fork, from the main thread and from another one. Each has the names of its parent's
// modules.
// build: -pthread
// expect-stack: victim_leaf <- victim_child allocs=200 alloc_bytes=26200 outstanding=200
// expect-stack: victim_leaf <- main allocs=10
// expect-processes: 11
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "victim.h"

// Newer processors have no call of its own for it.
#ifdef SYS_fork
#define BARE_FORK SYS_fork
#else
#define BARE_FORK SYS_clone, SIGCHLD, 0, 0, 0, 0
#endif

extern pid_t _Fork(void) __attribute__((weak));

VICTIM static void victim_leaf(void) { MUST(malloc(131) != NULL); }
VICTIM static int victim_child(void *nothing) {
    (void)nothing;
    for (int i = 0; i < 20; i++)
        victim_leaf();
    return 0;
}
static int on_new_stack(void *nothing) {
    victim_child(nothing);
    _exit(0);
}
static pid_t child_by(int way) {
    static char stack[65536] __attribute__((aligned(16)));
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    switch (way) {
    case 0:
        return _Fork ? _Fork() : (pid_t)syscall(BARE_FORK);
    case 1:
        return clone(on_new_stack, stack + sizeof stack, SIGCHLD, NULL);
    case 2:
        return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    case 3: {
        pid_t child = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
        // Some containers answer that the call does not exist.
        return child == -1 ? (pid_t)syscall(BARE_FORK) : child;
    }
    default:
        return (pid_t)syscall(BARE_FORK);
    }
}
static void *all_ways(void *nothing) {
    for (int way = 0; way < 5; way++) {
        pid_t child = child_by(way);
        MUST(child >= 0);
        if (child == 0) {
            victim_child(NULL);
            _exit(0);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child && status == 0);
    }
    return nothing;
}

int main(void) {
    for (int i = 0; i < 10; i++)
        victim_leaf();
    all_ways(NULL);
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, all_ways, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    puts("done");
    return 0;
}
