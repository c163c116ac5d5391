// A program whose heap begins right behind its data, at the same addresses each time.
// build: -no-pie
// leaks: frame=in_last_variable kind=reachable count=1
// leaks: frame=first_of_heap kind=reachable count=1
// leaks: frame=forgotten_beside_data kind=definite count=1
#include "graph.h"
#include <sys/personality.h>
#define MAKER(name, bytes) APART void *name(void) { void *p = malloc(bytes); __asm__ volatile("" : "+r"(p)); return p; }
MAKER(in_last_variable, 80) MAKER(first_of_heap, 81) MAKER(forgotten_beside_data, 82)
static void *volatile large[100000];
static APART void build(void) {
  void **first = first_of_heap();
  large[99999] = in_last_variable();
  large[0] = first;
  forgotten_beside_data();
}
int main(int argc, char **argv) {
  if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
    personality(ADDR_NO_RANDOMIZE);
    execv("/proc/self/exe", argv);
  }
  build();
  wait_to_be_seen();
}
