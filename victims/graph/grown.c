// Blocks that realloc has moved: the variable has the new address, or only the old one.
// leaks: frame=known_again kind=reachable count=1
// leaks: frame=lost_on_the_way kind=definite count=1 bytes=100000
#include "graph.h"
static void *volatile kept;
static volatile uintptr_t old;
APART void *known_again(void *block) { return realloc(block, 90000); }
APART void *lost_on_the_way(void *block) { return realloc(block, 100000); }
APART void *first(void) { return malloc(30); }
static APART void build(void) {
  kept = first();
  void *between = first();
  kept = known_again(kept);
  old = HIDDEN(lost_on_the_way(between));
}
int main(void) {
  far_below(build);
  wait_to_be_seen();
}
