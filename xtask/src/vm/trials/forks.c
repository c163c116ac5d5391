// A process and a child by fork: 100 blocks of 55 bytes in each, which stay.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void leave(void) {
    for (int number = 0; number < 100; number++) (void)!malloc(55);
}

int main(void) {
    leave();
    pid_t child = fork();
    if (child == 0) {
        leave();
        exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status != 0;
}
