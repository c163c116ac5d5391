// On a signal, a program ends, becomes another one, or makes children while its copy is read, as
// its argument says (exit, exec, fork). The graph is from before the signal.
// build: -pthread
// leaks: frame=forgotten_before kind=definite count=1
// leaks: frame=kept_before kind=reachable
#include "graph.h"
#include <signal.h>
enum { KEPT = 150000 };
static void **volatile kept;
static const char *what;
APART void *forgotten_before(void) { void *p = malloc(90); __asm__ volatile("" : "+r"(p)); return p; }
APART void *kept_before(void) { void *p = calloc(1, 200); __asm__ volatile("" : "+r"(p)); return p; }
static void turn_away(int signal) {
  if (strcmp(what, "exit") == 0) _exit(0);
  if (strcmp(what, "exec") == 0) execlp("sleep", "sleep", "100", (char *)0);
  for (int number = 0; number < 3; number++)
    if (fork() == 0) _exit(0);
}
static APART void build(void) {
  kept = calloc(KEPT, sizeof *kept);
  for (int number = 0; number < KEPT; number++) {
    kept[number] = kept_before();
    if (number) *(void **)kept[number] = kept[number / 2];
  }
  forgotten_before();
  signal(SIGCHLD, SIG_IGN);
  signal(SIGUSR1, turn_away);
}
int main(int argc, char **argv) {
  what = argv[1];
  build();
  wait_to_be_seen();
}
