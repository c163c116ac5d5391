// Children by posix_spawn, system and popen (each through a shell): all are traced.
// expect: frame=victim_child allocs=21 alloc_bytes=987 outstanding=21
// expect: frame=victim_parent allocs=1 alloc_bytes=41
#include <spawn.h>
#include <sys/wait.h>

#include "victim.h"

extern char **environ;

VICTIM static void victim_parent(void) { MUST(malloc(41) != NULL); }
VICTIM static void victim_child(void) {
    for (int i = 0; i < 7; i++)
        MUST(malloc(47) != NULL);
}

int main(int count, char **arguments) {
    if (count > 1) {
        victim_child();
        puts("child");
        return 0;
    }
    victim_parent();
    pid_t child;
    char *child_arguments[] = {arguments[0], "child", NULL};
    MUST(posix_spawn(&child, "/proc/self/exe", NULL, NULL, child_arguments, environ) == 0);
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    char line[4200];
    snprintf(line, sizeof line, "'%s' child", arguments[0]);
    MUST(system(line) == 0);
    FILE *pipe = popen(line, "r");
    MUST(pipe && fgets(line, sizeof line, pipe) && strcmp(line, "child\n") == 0 && pclose(pipe) == 0);
    puts("done");
    return 0;
}
