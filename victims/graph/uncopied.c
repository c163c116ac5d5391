// Programs that cannot be copied for a reason that the argument selects. They are stopped while
// they are read.
//   filter   a seccomp filter that would end it for clone
//   refused  a seccomp filter that answers clone with an error
//   reaper   orphans are left to it: it would be sent a signal when the copy ends
//   large    nothing of its own: its group will be near its limit of memory
//   plain    nothing of its own: it is the first process of a container
// leaks: frame=forgotten_by_uncopied kind=definite count=1
// leaks: frame=held_by_uncopied kind=reachable
#include "graph.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
static void *volatile held;
APART void *forgotten_by_uncopied(void) { void *p = malloc(50); __asm__ volatile("" : "+r"(p)); return p; }
APART void *held_by_uncopied(void) { void *p = malloc(51); __asm__ volatile("" : "+r"(p)); return p; }
static void child_signal(int signal) { _exit(98); }
static APART void build(const char *why) {
  forgotten_by_uncopied();
  held = held_by_uncopied();
  struct sigaction action = {.sa_handler = child_signal};
  sigaction(SIGCHLD, &action, 0);
  if (strcmp(why, "plain") == 0) return;
  if (strcmp(why, "large") == 0) {
    static void *volatile large;
    memset(large = malloc(64 << 20), 1, 64 << 20);
    return;
  }
  if (strcmp(why, "reaper") == 0) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return;
  }
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, strcmp(why, "refused") ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {4, filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(97);
}
int main(int argc, char **argv) {
  build(argv[1]);
  wait_to_be_seen();
}
