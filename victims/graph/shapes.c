// Unreachable chains, trees and circles: each is one leak, with all that hangs on it.
// leaks: frame=chain kind=definite count=1 retained=3200
// leaks: frame=chain kind=indirect count=99
// leaks: frame=tree kind=definite count=1 retained=480
// leaks: frame=tree kind=indirect count=14
// leaks: frame=ring kind=definite count=1 retained=128
// leaks: frame=ring kind=indirect count=2
// leaks: frame=hung_on_ring kind=indirect count=1
// leaks: frame=to_itself kind=definite count=1 retained=32
// leaks: frame=nothing_asked kind=definite count=3 bytes=0
// leaks: frame=large kind=definite count=1 bytes=50000000
// leaks: frame=aligned kind=definite count=1 bytes=1000
// leaks: frame=grown kind=definite count=1 bytes=5000
#include "graph.h"
struct node { struct node *volatile one, *volatile two; long more[2]; };
APART struct node *chain(void) { return calloc(1, sizeof(struct node)); }
APART struct node *tree(int depth) {
  struct node *p = calloc(1, sizeof *p);
  if (depth > 1) { p->one = tree(depth - 1); p->two = tree(depth - 1); }
  return p;
}
APART struct node *ring(void) { return calloc(1, sizeof(struct node)); }
APART struct node *hung_on_ring(void) { return calloc(1, 0 + sizeof(struct node)); }
APART void to_itself(void) { struct node *p = calloc(1, sizeof *p); p->one = p; p->two = (struct node *)&p->more; }
APART void nothing_asked(void) { char *volatile p = malloc(0); (void)p; }
APART void large(void) { char *p = malloc(50000000); p[0] = 1; p[49999999] = 1; __asm__ volatile("" : : "r"(p)); }
APART void aligned(void) { void *p = 0; if (!posix_memalign(&p, 512, 1000)) { __asm__ volatile("" : : "r"(p)); } p = 0; __asm__ volatile("" : : "r"(&p) : "memory"); }
APART void grown(void) { char *volatile p = malloc(50); p = realloc(p, 5000); (void)p; }
static APART void build(void) {
  struct node *last = 0;
  for (int i = 0; i < 100; i++) { struct node *p = chain(); p->one = last; last = p; }
  tree(4);
  struct node *a = ring(), *b = ring(), *c = ring();
  a->one = b; b->one = c; c->one = a;
  c->two = 0;
  to_itself();
  for (int i = 0; i < 3; i++) nothing_asked();
  large(); aligned(); grown();
  b->two = hung_on_ring();
}
int main(void) { build(); wait_to_be_seen(); }
