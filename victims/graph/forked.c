// A child of a program with threads: it has only the thread that made it, so that blocks of the
// other threads have no holder. (The child prints that it is ready.)
// build: -pthread
// leaks: frame=forgotten_in_child kind=definite count=1 bytes=70
// leaks: frame=held_before_fork kind=reachable
// leaks: frame=held_in_child kind=reachable
#include "graph.h"
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
static void *volatile before, *volatile in_child;
static volatile int ready;
APART void *forgotten_in_child(void) { void *p = malloc(70); __asm__ volatile("" : "+r"(p)); return p; }
APART void *held_before_fork(void) { void *p = malloc(71); __asm__ volatile("" : "+r"(p)); return p; }
APART void *held_in_child(void) { void *p = malloc(72); __asm__ volatile("" : "+r"(p)); return p; }
static void *thread(void *unused) { ready = 1; for (;;) pause(); }
static APART void build(void) { forgotten_in_child(); in_child = held_in_child(); }
int main(void) {
  before = held_before_fork();
  pthread_t t;
  pthread_create(&t, 0, thread, 0);
  while (!ready) usleep(1000);
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    build();
    wait_to_be_seen();
  }
  waitpid(child, 0, 0);
}
