// Counts the instructions of a pair of malloc and free: a child makes the pair between two traps,
// and its parent steps it from one to the other. Prints their number. With samples far apart it may
// be larger by heapr's instructions only.
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../victim.h"

enum { PAIRS = 8 };

static void *volatile block;

VICTIM static void pairs(void) {
    for (int i = 0; i < PAIRS; i++) {
        block = malloc(64);
        free(block);
    }
}

int main(void) {
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        MUST(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
        // Warms up everything that is initialised once.
        for (int i = 0; i < 100; i++)
            pairs();
        __asm__ volatile("int3");
        pairs();
        __asm__ volatile("int3");
        _exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == 5);
    long count = 0;
    for (;;) {
        MUST(ptrace(PTRACE_SINGLESTEP, child, 0, 0) == 0);
        MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        // The second trap is executed, not stepped to: its instruction lies before.
        long pc = ptrace(PTRACE_PEEKUSER, child, 16 * 8, 0);
        long code = ptrace(PTRACE_PEEKTEXT, child, pc, 0);
        if ((code & 0xff) == 0xcc)
            break;
        MUST(++count < 100000);
    }
    kill(child, 9);
    waitpid(child, &status, 0);
    printf("%ld\n", count / PAIRS);
    return 0;
}
