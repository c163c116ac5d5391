// A seccomp filter that kills at any system call but read, write and exit: no memory, no futex, no
// clock. Events without room are counted as lost; the program is not ended.
// verify: 0
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

// Makes another stack for each number.
VICTIM static void victim_deeper(unsigned number) {
    if (number == 0)
        free(malloc(100));
    else if (number & 1)
        victim_deeper(number >> 1);
    else
        victim_deeper((number >> 1) - (number == 0));
    __asm__ volatile("");
}

int main(void) {
    puts("done");
    fflush(stdout);
    free(malloc(100));
    free(malloc(191));
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_exit), ALLOW(SYS_rt_sigreturn),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    victim_inside();
    for (unsigned i = 0; i < 100000; i++)
        victim_deeper(i);
    _exit(0);
}
