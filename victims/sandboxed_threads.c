// As sandboxed.c, with threads made after the filter: the first event of a thread must make no
// system call that the C library does not make for it.
// verify: 64
// expect: frame=victim_in_thread allocs=200000 alloc_bytes=38200000 outstanding=0
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "victim.h"

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

VICTIM static void *victim_in_thread(void *unused) {
    for (int i = 0; i < 50000; i++)
        free(malloc(191));
    return unused;
}

int main(void) {
    pthread_t threads[4];
    puts("done");
    fflush(stdout);
    free(malloc(100));
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_brk), ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_mprotect), ALLOW(SYS_madvise),
        ALLOW(SYS_mremap), ALLOW(SYS_futex), ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_exit),
        ALLOW(SYS_rt_sigreturn), ALLOW(SYS_clone), ALLOW(SYS_clone3), ALLOW(SYS_rseq), ALLOW(SYS_set_robust_list),
        ALLOW(SYS_rt_sigprocmask), ALLOW(SYS_rt_sigaction), ALLOW(SYS_sched_getaffinity), ALLOW(SYS_prlimit64),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    for (int i = 0; i < 4; i++)
        MUST(pthread_create(&threads[i], NULL, victim_in_thread, NULL) == 0);
    for (int i = 0; i < 4; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    _exit(0);
}
