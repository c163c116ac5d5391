// Blocks held by reserved huge pages, private and shared, written and then locked; without reserved
// pages, ordinary memory takes their place. A page that was never written holds no block.
// leaks: frame=in_private kind=reachable count=1
// leaks: frame=in_shared kind=reachable count=1
// leaks: frame=in_locked kind=reachable count=1
// leaks: frame=in_none kind=definite count=1
#include "graph.h"
#include <sys/mman.h>
APART void *in_private(void) { return malloc(301); }
APART void *in_shared(void) { return malloc(302); }
APART void *in_locked(void) { return malloc(303); }
APART void *in_none(void) { return malloc(304); }
enum { HUGE_BYTES = 2 << 20 };
static void *map(int kind) {
  int flags = kind | MAP_ANONYMOUS;
  void *p = mmap(0, HUGE_BYTES, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);
  return p == MAP_FAILED ? mmap(0, HUGE_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) : p;
}
static APART void build(void) {
  void **private = map(MAP_PRIVATE), **shared = map(MAP_SHARED), **locked = map(MAP_PRIVATE);
  map(MAP_PRIVATE);
  private[70000] = in_private();
  shared[70001] = in_shared();
  locked[70002] = in_locked();
  mprotect(locked, HUGE_BYTES, PROT_NONE);
  in_none();
}
int main(void) { build(); wait_to_be_seen(); }
