/* A seccomp filter: filtered WHO ANSWER CALL. WHO: "main" before it is ready, "thread" one that waits, "later" main at the first line.
   ANSWER: what becomes of CALL (0x80000000: the process is killed; 0 but for "main": strict mode); all other calls are allowed.
   For each line on standard input: 1000 pairs of malloc and free, then "done". */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
static unsigned answer, call;
static void filter(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(9);
}
static volatile int is_filtered;
static int waited_for[2];
static void filter_or_strict(void) {
    if (answer) filter();
    else if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) _exit(9);
}
static void *wait_filtered(void *unused) {
    char byte;
    filter_or_strict();
    is_filtered = 1;
    for (;;) read(waited_for[0], &byte, 1);
}
int main(int count, char **arguments) {
    char line[64];
    pthread_t thread;
    /* The C library asks for random numbers at the first. */
    free(malloc(100));
    setvbuf(stdout, 0, _IONBF, 0);
    if (count != 4) return 1;
    answer = strtoul(arguments[2], 0, 0);
    call = strtoul(arguments[3], 0, 0);
    int is_later = !strcmp(arguments[1], "later");
    if (!strcmp(arguments[1], "main")) filter();
    if (!strcmp(arguments[1], "thread")) {
        if (pipe(waited_for) || pthread_create(&thread, 0, wait_filtered, 0)) return 1;
        while (!is_filtered) usleep(1000);
    }
    puts("ready");
    while (read(0, line, sizeof line) > 0) {
        if (is_later) filter_or_strict();
        is_later = 0;
        for (int i = 0; i < 1000; i++) free(malloc(100));
        puts("done");
    }
}
