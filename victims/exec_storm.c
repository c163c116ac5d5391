// Hundreds of processes that start some milliseconds apart, each by a fork and an exec, most with a
// second exec a moment later. A process that registers takes the slot of one that has just ended,
// in any order. All of each is recorded, and nothing is attributed to another process.
// exit: 0
// expect: frame=victim_work allocs=400000 alloc_bytes=40000000 outstanding=0
// expect-unmatched: 0
// expect-processes: 1001
#include "victim.h"

#include <sys/wait.h>

enum { CHILDREN = 400, ROUNDS = 4, BLOCKS = 250 };

VICTIM static void victim_work(void) {
    char *blocks[BLOCKS];
    for (int number = 0; number < BLOCKS; number++)
        MUST((blocks[number] = malloc(100)) != NULL);
    for (int number = 0; number < BLOCKS; number++)
        free(blocks[number]);
}

static void go_on_to(const char *program, const char *pause_ms) {
    execl("/proc/self/exe", "exec_storm", program, pause_ms, NULL);
    _exit(98);
}

int main(int count, char **arguments) {
    if (count > 2 && strcmp(arguments[1], "first") == 0)
        go_on_to("second", arguments[2]);
    if (count > 2) {
        for (int round = 0; round < ROUNDS; round++) {
            victim_work();
            usleep(1000 * (unsigned)atoi(arguments[2]));
        }
        return 0;
    }
    for (int number = 0; number < CHILDREN; number++) {
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0 && number % 2 == 0)
            go_on_to("first", "120");
        if (child == 0)
            go_on_to("second", "0");
        usleep(3000);
    }
    int status;
    for (int number = 0; number < CHILDREN; number++)
        MUST(wait(&status) > 0 && status == 0);
    puts("done");
    return 0;
}
