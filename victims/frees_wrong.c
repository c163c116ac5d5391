// Frees what is free already, and what was never allocated: each in a child of its own, which the C
// library ends.
// expect: frame=victim_allocate allocs=12 outstanding=1
// expect-processes: >=3
// expect-unmatched: 2
// verify: 0
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

VICTIM static void *victim_allocate(void) { return malloc(100); }

VICTIM static void victim_free_well(void *block) { free(block); }

VICTIM static void victim_free_first(void *block) { free(block); }

VICTIM static void victim_free_again(void *block) { free(block); }

VICTIM static void victim_free_unknown(void *block) { free(block); }

static void on_abort(int signal) {
    (void)signal;
    _exit(0);
}

static void free_wrongly(int is_twice) {
    MUST(freopen("/dev/null", "w", stderr) != NULL && signal(SIGABRT, on_abort) != SIG_ERR);
    char *volatile block = victim_allocate();
    if (is_twice)
        victim_free_first(block);
    is_twice ? victim_free_again(block) : victim_free_unknown(block + 16);
}

// Runs a program of its own: a block that a forked child frees may always be its parent's.
static void in_child(const char *program, const char *what) {
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        execl(program, program, what, NULL);
        _exit(99);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int count, char **arguments) {
    if (count > 1) {
        free_wrongly(arguments[1][0] == 't');
        return 99;
    }
    for (int i = 0; i < 10; i++)
        victim_free_well(victim_allocate());
    in_child(arguments[0], "twice");
    in_child(arguments[0], "unknown");
    return 0;
}
