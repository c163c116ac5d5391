// Threads that allocate and free as fast as they can while signals arrive, and leave blocks behind.
// Blocks that they hold at the moment must not be taken for leaks. Threads come and go meanwhile.
// build: -pthread
// leaks: frame=left_in_passing kind=definite count=40 bytes=2640
// leaks: frame=kept_in_passing kind=reachable
// leaks: frame=given_to_thread kind=reachable
#include "graph.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
static volatile int ready;
static void *volatile kept[8];
APART void *left_in_passing(void) { void *p = malloc(66); __asm__ volatile("" : "+r"(p)); return p; }
APART void *kept_in_passing(long size) { void *p = malloc(size); __asm__ volatile("" : "+r"(p)); return p; }
APART void *given_to_thread(void) { void *p = malloc(500); __asm__ volatile("" : "+r"(p)); return p; }
static void on_signal(int signal) {}
static APART void leave(void) { for (int i = 0; i < 5; i++) left_in_passing(); }
static void *worker(void *argument) {
  long number = (long)argument;
  leave();
  forget();
  kept[number] = kept_in_passing(100);
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  for (unsigned long round = 0;; round++) {
    void *p = kept_in_passing(20 + round % 3000);
    *(volatile char *)p = 1;
    free(p);
    if (round % 1000 == 0) usleep(300);
  }
}
static void *short_lived(void *argument) { usleep(500); free(argument); return 0; }
static void *maker(void *unused) {
  for (;;) {
    pthread_t thread;
    void *volatile given = given_to_thread();
    if (pthread_create(&thread, 0, short_lived, given)) { free(given); usleep(1000); continue; }
    given = 0;
    pthread_join(thread, 0);
    usleep(2000);
  }
}
static APART void build(void) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, 0);
  struct itimerval often = {{0, 3000}, {0, 3000}};
  setitimer(ITIMER_REAL, &often, 0);
  pthread_t thread;
  for (long number = 0; number < 8; number++) pthread_create(&thread, 0, worker, (void *)number);
  pthread_create(&thread, 0, maker, 0);
  while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < 8) usleep(1000);
}
int main(void) { build(); wait_to_be_seen(); }
