// A seccomp filter that kills at any system call but those that malloc and the program need
// (memory, futex, write, exit): the agent must make no other call.
// verify: 64
// expect: frame=victim_inside allocs=200000 alloc_bytes=38200000 outstanding=0
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "victim.h"

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

VICTIM static void victim_inside(void) {
    for (int i = 0; i < 200000; i++)
        free(malloc(191));
}

int main(void) {
    puts("done");
    fflush(stdout);
    free(malloc(100));
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_brk), ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_mprotect), ALLOW(SYS_madvise),
        ALLOW(SYS_mremap), ALLOW(SYS_futex), ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_exit),
        ALLOW(SYS_rt_sigreturn),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    victim_inside();
    _exit(0);
}
