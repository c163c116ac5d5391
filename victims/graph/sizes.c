// Blocks of zero bytes, and blocks with mappings of their own.
// leaks: frame=nothing_kept kind=reachable count=1
// leaks: frame=nothing_lost kind=definite count=1
// leaks: frame=large_kept kind=reachable count=1
// leaks: frame=large_lost kind=definite count=1 bytes=50000000
// leaks: frame=in_large kind=reachable count=1
// leaks: frame=in_large_lost kind=indirect count=1
#include "graph.h"
static void *volatile kept[2];
APART void *nothing_kept(void) { return malloc(0); }
APART void *nothing_lost(void) { return malloc(0); }
APART void **large_kept(void) { return calloc(1, 40000000); }
APART void **large_lost(void) { return calloc(1, 50000000); }
APART void *in_large(void) { return malloc(72); }
APART void *in_large_lost(void) { return malloc(72); }
static APART void build(void) {
  kept[0] = nothing_kept();
  nothing_lost();
  void **large = large_kept();
  kept[1] = large;
  large[4999999] = in_large();
  large = large_lost();
  ((void *volatile *)large)[3000000] = in_large_lost();
}
int main(void) {
  build();
  wait_to_be_seen();
}
