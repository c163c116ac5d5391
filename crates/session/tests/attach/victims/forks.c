/* Makes children without end, by fork, posix_spawn and vfork in turn, and looks at their status; a line for each 20. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    puts("ready");
    for (long n = 0;; n++) {
        void *block = malloc(100);
        pid_t child;
        int status, expected = 0;
        if (n % 3 == 0) {
            expected = 7;
            child = fork();
            if (!child) {
                void *other = malloc(50);
                free(other);
                free(block);
                _exit(7);
            }
        } else if (n % 3 == 1) {
            char *arguments[] = {"/bin/true", 0};
            if (posix_spawn(&child, "/bin/true", 0, 0, arguments, environ)) abort();
        } else {
            child = vfork();
            if (!child) {
                execl("/bin/true", "true", (char *)0);
                _exit(1);
            }
        }
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != expected) {
            printf("wrong status %x\n", status);
            abort();
        }
        free(block);
        if (n % 20 == 19) printf("%ld\n", n);
    }
}
