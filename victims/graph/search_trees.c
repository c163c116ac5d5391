// Trees of the C library: a variable holds one, the root of the other is forgotten. The C library
// stores a node's colour in the lowest bit of a pointer, so that some nodes are held in doubt.
// leaks: frame=key_kept kind=definite count=0
// leaks: frame=key_kept kind=indirect count=0
// leaks: frame=key_lost kind=indirect count=40
#include "graph.h"
#include <search.h>
static void *kept, *lost;
static int order(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }
APART int *key_kept(int value) { int *key = malloc(24); *key = value; return key; }
APART int *key_lost(int value) { int *key = malloc(24); *key = value; return key; }
APART void plant_lost(void) {
  for (int value = 0; value < 40; value++) tsearch(key_lost(value * 17 % 41), &lost, order);
}
static APART void build(void) {
  for (int value = 0; value < 40; value++) tsearch(key_kept(value * 17 % 41), &kept, order);
  plant_lost();
  *(void *volatile *)&lost = 0;
}
int main(void) {
  build();
  wait_to_be_seen();
}
