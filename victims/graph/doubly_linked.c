// Doubly linked rings: a variable leads to one, and the only reference to another was cut.
// leaks: frame=ring_kept kind=reachable count=50
// leaks: frame=ring_lost kind=definite count=1
// leaks: frame=ring_lost kind=indirect count=49
#include "graph.h"
struct node { struct node *next, *previous; char text[32]; };
static struct node *volatile kept, *volatile lost;
APART struct node *ring_kept(void) { return calloc(1, sizeof(struct node)); }
APART struct node *ring_lost(void) { return calloc(1, sizeof(struct node)); }
static struct node *with(struct node *ring, struct node *node) {
  if (!ring) return node->next = node->previous = node;
  node->next = ring, node->previous = ring->previous;
  return ring->previous = ring->previous->next = node, ring;
}
static APART void build(void) {
  for (int number = 0; number < 50; number++) {
    kept = with(kept, ring_kept());
    lost = with(lost, ring_lost());
  }
  lost = 0;
}
int main(void) {
  build();
  wait_to_be_seen();
}
