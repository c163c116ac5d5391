/* Its only thread waits for a child made by vfork until that has read a line: it cannot be stopped, whoever asks. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void read_line(void) {
    char byte;
    while (read(0, &byte, 1) == 1 && byte != '\n') {
    }
}
int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    free(malloc(100));
    puts("ready");
    while (1) {
        pid_t child = vfork();
        if (child == 0) {
            read_line();
            _exit(0);
        }
        waitpid(child, 0, 0);
        free(malloc(100));
        puts("went on");
    }
}
