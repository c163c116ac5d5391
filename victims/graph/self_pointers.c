// Blocks to which only they themselves refer.
// leaks: frame=to_itself kind=definite count=1 bytes=64
// leaks: frame=to_its_middle kind=definite count=1
// leaks: frame=held kind=reachable count=1
#include "graph.h"
static void *volatile kept;
APART void **to_itself(void) { return calloc(1, 64); }
APART void **to_its_middle(void) { return calloc(1, 64); }
APART void **held(void) { return calloc(1, 64); }
static APART void build(void) {
  void **block = to_itself();
  block[3] = block;
  block = to_its_middle();
  block[0] = block + 5;
  block = held();
  block[0] = block;
  kept = block;
}
int main(void) {
  build();
  wait_to_be_seen();
}
