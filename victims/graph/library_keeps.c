// Blocks that the C library holds for the program: environment, exit handlers, buffers.
// leaks: frame=of_environment kind=reachable count=1
// leaks: frame=of_exit kind=reachable count=1
// leaks: frame=of_file kind=reachable count=1
// leaks: frame=of_nobody kind=definite count=3
#include "graph.h"
extern int __cxa_atexit(void (*function)(void *), void *argument, void *module);
static void at_exit(void *argument) { (void)argument; }
APART char *of_environment(void) { return malloc(64); }
APART void *of_exit(void) { return malloc(64); }
APART char *of_file(void) { return malloc(4096); }
APART void *of_nobody(void) { return malloc(64); }
static APART void build(void) {
  char *variable = of_environment();
  strcpy(variable, "HELD_BY=environment");
  putenv(variable);
  __cxa_atexit(at_exit, of_exit(), 0);
  setvbuf(stderr, of_file(), _IOFBF, 4096);
  of_nobody(), of_nobody(), of_nobody();
}
int main(void) {
  build();
  wait_to_be_seen();
}
