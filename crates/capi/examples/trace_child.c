/* Creates a child that is suspended, starts a session for its process id, lets it run, and stops the session.
 *
 *     cc -o trace_child trace_child.c -lheapr
 *     ./trace_child OUTPUT.heapr
 *
 * The child allocates 1,000 blocks of 100 bytes and keeps 10 of them.
 */
#include <heapr.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *kept[10];

static int work(void) {
    for (int i = 0; i < 1000; i++) {
        void *block = malloc(100);
        if (i % 100 == 0)
            kept[i / 100] = block;
        else
            free(block);
    }
    return kept[9] == NULL;
}

static int fail(const char *what, pid_t child) {
    fprintf(stderr, "%s: %s\n", what, heapr_last_error());
    kill(child, SIGKILL);
    return 1;
}

int main(int count, char **words) {
    if (count != 2) {
        fprintf(stderr, "usage: %s OUTPUT.heapr\n", words[0]);
        return 2;
    }
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return 1;
    }
    if (child == 0) {
        raise(SIGSTOP); /* until the session has begun */
        _exit(work());
    }
    int waited;
    waitpid(child, &waited, WUNTRACED);

    struct heapr_properties properties;
    heapr_properties_init(&properties);
    properties.output = words[1];
    properties.overwrite = 1;
    struct heapr_trace *trace;
    uint32_t pid = (uint32_t)child;
    if (heapr_start(&trace, &properties, "trace_child", &pid, 1, HEAPR_STACK_DEFAULT) != HEAPR_OK)
        return fail("cannot start", child);

    kill(child, SIGCONT);
    waitpid(child, &waited, 0);
    struct heapr_status status;
    if (heapr_stop(trace, &status) != HEAPR_OK)
        return fail("cannot stop", child);
    printf("child ended with %d; %llu events, %llu lost, %llu blocks outstanding\n", WEXITSTATUS(waited),
           (unsigned long long)status.event_count, (unsigned long long)status.events_lost,
           (unsigned long long)status.live_count);
    return 0;
}
