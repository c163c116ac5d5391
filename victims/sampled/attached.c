// A process that is attached to. It prints its pid and waits for a file. Then it allocates 20,000
// blocks of 200 bytes by each function, and keeps every tenth. It counts the instructions of a pair
// of malloc and free: a child makes the pair between two traps, and its parent steps it from one to
// the other.
// Usage: attached FILE
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../victim.h"

enum { PAIRS = 8, CALLS = 20000, SIZE = 200, KEPT = 10 };

static void *volatile block;

VICTIM static void pairs(void) {
    for (int i = 0; i < PAIRS; i++) {
        block = malloc(64);
        free(block);
    }
}

VICTIM static void *sampled_malloc(void) { return malloc(SIZE); }
VICTIM static void *sampled_calloc(void) { return calloc(SIZE / 8, 8); }
VICTIM static void *sampled_memalign(void) { return memalign(16, SIZE); }
VICTIM static void *sampled_aligned_alloc(void) { return aligned_alloc(64, SIZE); }
VICTIM static void *sampled_realloc(void) { return realloc(NULL, SIZE); }
VICTIM static void *sampled_posix_memalign(void) {
    void *made = NULL;
    MUST(posix_memalign(&made, 8, SIZE) == 0);
    return made;
}
VICTIM static void *sampled_grown(void) { return realloc(malloc(8), SIZE); }

typedef void *(*Function)(void);

static const Function functions[] = {sampled_malloc,  sampled_calloc,         sampled_memalign, sampled_aligned_alloc,
                                     sampled_realloc, sampled_posix_memalign, sampled_grown};

static void work(const char *file) {
    while (access(file, F_OK) != 0)
        usleep(1000);
    for (int i = 0; i < CALLS; i++) {
        for (unsigned f = 0; f < sizeof functions / sizeof *functions; f++) {
            block = functions[f]();
            MUST(block != NULL);
            if (i % KEPT != 0)
                free(block);
        }
    }
    for (int i = 0; i < 100; i++)
        pairs();
    if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
        _exit(1);
    __asm__ volatile("int3");
    pairs();
    __asm__ volatile("int3");
    // It lives until it is killed, so that its heap can be inspected.
    for (;;)
        pause();
}

int main(int count, char **arguments) {
    MUST(count == 2);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        // Any process may attach that the system's rules allow.
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0);
        work(arguments[1]);
    }
    printf("%d\n", child);
    fflush(stdout);
    int status;
    MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status) && WSTOPSIG(status) == 5);
    long steps = 0;
    for (;;) {
        MUST(ptrace(PTRACE_SINGLESTEP, child, 0, 0) == 0);
        MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        // The second trap is executed, not stepped to: its instruction lies before.
        long pc = ptrace(PTRACE_PEEKUSER, child, 16 * 8, 0);
        if ((ptrace(PTRACE_PEEKTEXT, child, pc, 0) & 0xff) == 0xcc)
            break;
        MUST(++steps < 100000);
    }
    printf("%ld\n", steps / PAIRS);
    fflush(stdout);
    // Waits until its input ends.
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
    kill(child, 9);
    return 0;
}
