// Starts a program as runc and crun do: it execs a copy of itself in memory, makes a child in new
// namespaces, and changes its root there. The child execs the program with an environment of its
// own, and allocates nothing before. Status 77: the rights for this are missing.
// With WITHOUT_PROC set, /proc is not mounted there.
// usage: contain ROOT PROGRAM [ARGUMENT...]
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char stack[1 << 16];

static int inside(void *words) {
    char **argv = words, *own[] = {"PATH=/bin", NULL};
    const char *root = argv[1];
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount(root, root, NULL, MS_BIND | MS_REC, NULL))
        return 77;
    // A container has /proc; without it the process cannot determine its pid from there.
    if (chdir(root) || (!getenv("WITHOUT_PROC") && mount("proc", "proc", "proc", 0, NULL)))
        return 77;
    if (syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/"))
        return 77;
    execve(argv[2], argv + 2, own);
    return 78;
}

static int go_on_as_copy(char **argv) {
    int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("contain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stat file;
    if (from < 0 || to < 0 || fstat(from, &file))
        return 79;
    for (off_t at = 0; at < file.st_size;)
        if (sendfile(to, from, &at, file.st_size - at) <= 0)
            return 79;
    fcntl(to, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    setenv("COPIED", "1", 1);
    fexecve(to, argv, environ);
    return 79;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 79;
    if (!getenv("COPIED"))
        return go_on_as_copy(argv);
    int namespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWCGROUP;
    int status, child = clone(inside, stack + sizeof stack, namespaces | SIGCHLD, argv);
    if (child < 0)
        return 77;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 78;
}
