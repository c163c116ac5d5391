// A working program whose children only it may make. Threads allocate, change and check their
// blocks, and one thread waits for children that do not exist. Ends with 99 if its state was
// changed from outside.
// build: -pthread
// leaks: frame=forgotten_at_work kind=definite count=1
// leaks: frame=kept_at_work kind=reachable count=2
#include "graph.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
enum { BLOCKS = 2000 };
struct block { uint64_t sum, words[30]; };
static struct block *blocks[2][BLOCKS];
APART void *kept_at_work(void) { return malloc(4000); }
APART void *forgotten_at_work(void) { return malloc(4001); }
static void *kept[2];
static void wrong(const char *what) {
  fprintf(stderr, "at_work: %s\n", what);
  _exit(99);
}
static void child_signal(int signal) { wrong("a signal of a child"); }
static void *worker(void *argument) {
  long number = (long)argument;
  kept[number] = kept_at_work();
  for (uint64_t round = 0;; round++) {
    struct block **place = &blocks[number][round * 7919 % BLOCKS];
    if (*place) {
      uint64_t sum = 0;
      for (int word = 0; word < 30; word++) sum += (*place)->words[word];
      if (sum != (*place)->sum) wrong("a block has changed");
      free(*place);
    }
    *place = malloc(sizeof **place);
    (*place)->sum = 0;
    for (int word = 0; word < 30; word++) (*place)->sum += (*place)->words[word] = round * 31 + word;
    if (round % 64 == 0) usleep(200);
  }
}
static APART void build(void) {
  forgotten_at_work();
  struct sigaction action = {.sa_handler = child_signal};
  sigaction(SIGCHLD, &action, 0);
  pthread_t thread;
  for (long number = 0; number < 2; number++) pthread_create(&thread, 0, worker, (void *)number);
  while (!kept[0] || !kept[1]) usleep(1000);
}
int main(void) {
  build();
  say_who();
  forget();
  (void)!write(1, ready_line, strlen(ready_line));
  for (;;) {
    int status;
    if (waitpid(-1, &status, WNOHANG) != -1 || errno != ECHILD) wrong("a child that it has not made");
    usleep(500);
  }
}
