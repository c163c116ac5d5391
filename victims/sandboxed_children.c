// A filter, installed by way of syscall(), that kills a process that makes the agent's first calls.
// The program is recorded, and its forked child; programs that they exec run without the agent.
// expect: frame=victim_inside allocs=2000 alloc_bytes=382000 outstanding=0
// expect-processes: 2
// refused: 2
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "victim.h"

#define KILL(number)                                                                                                                  \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

extern char **environ;

VICTIM static void victim_inside(void) {
    for (int i = 0; i < 1000; i++)
        free(malloc(191));
}

static void wait_for(pid_t child) {
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
}

int main(int count, char **arguments) {
    if (count > 1) {
        victim_inside();
        MUST(write(1, arguments[1], strlen(arguments[1])) > 0);
        return 0;
    }
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL(SYS_getppid), KILL(SYS_sigaltstack), KILL(SYS_ioctl), KILL(SYS_kill),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    // Libraries probe in this way whether filters exist.
    MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1 && errno == EFAULT);
    MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
    victim_inside();
    pid_t child = fork();
    if (child == 0) {
        victim_inside();
        execl("/no/such/program", "no", NULL);
        execl(arguments[0], arguments[0], "gone on\n", (char *)NULL);
        _exit(1);
    }
    wait_for(child);
    char *spawned[] = {arguments[0], "spawned\n", NULL};
    MUST(posix_spawnp(&child, arguments[0], NULL, NULL, spawned, environ) == 0);
    wait_for(child);
    return 0;
}
