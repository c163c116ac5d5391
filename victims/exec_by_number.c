// The program execs itself by the numbers of the system calls, with a new environment. It does so
// twice by execve, then by execveat with a path and with a descriptor. Five images, each with its
// own blocks. A call that fails says why.
// exit: 7
// expect: frame=victim_image allocs=5 alloc_bytes=305 outstanding=5
// expect-processes: 5
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "victim.h"

VICTIM static void victim_image(void) { MUST(malloc(61) != NULL); }

int main(int count, char **arguments) {
    victim_image();
    int left = count > 1 ? atoi(arguments[1]) : 4;
    if (left == 0) {
        puts("done");
        return 7;
    }
    char next[16];
    snprintf(next, sizeof next, "%d", left - 1);
    char *words[] = {arguments[0], next, NULL}, *environment[] = {"OWN=1", NULL};
    errno = 0;
    MUST(syscall(SYS_execve, "/nowhere", words, environment) == -1 && errno == ENOENT);
    if (left > 2)
        syscall(SYS_execve, "/proc/self/exe", words, environment);
    else if (left == 2)
        syscall(SYS_execveat, AT_FDCWD, "/proc/self/exe", words, environment, 0);
    else
        syscall(SYS_execveat, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "", words, environment, AT_EMPTY_PATH);
    return 98;
}
