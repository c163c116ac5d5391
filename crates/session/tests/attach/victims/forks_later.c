// At each line that it is told it forks a child, in both ways, that allocates 101 bytes twenty times.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void victim_child(void) {
    for (int i = 0; i < 20; i++)
        if (malloc(101) == NULL)
            _exit(99);
    _exit(0);
}

int main(void) {
    char line[16];
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin) != NULL) {
        for (int way = 0; way < 2; way++) {
            pid_t child = way == 0 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
            if (child == 0)
                victim_child();
            int status;
            if (waitpid(child, &status, 0) != child || status != 0)
                return 99;
        }
        puts("done");
    }
    return 0;
}
