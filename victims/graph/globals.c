// Variables of all kinds as holders: initialised, uninitialised, of a function, arrays.
// leaks: frame=in_initialised kind=reachable count=1
// leaks: frame=in_uninitialised kind=reachable count=1
// leaks: frame=in_function kind=reachable count=1
// leaks: frame=in_array kind=reachable count=3
// leaks: frame=in_structure kind=reachable count=1
// leaks: frame=overwritten kind=definite count=2
#include "graph.h"
static void *volatile initialised = (void *)&initialised;
static void *volatile uninitialised;
static void *volatile array[1000];
static volatile struct { char name[24]; void *block; } structure = {"held"};
static void *volatile last;
APART void *in_initialised(void) { return malloc(48); }
APART void *in_uninitialised(void) { return malloc(48); }
APART void *in_function(void) { return malloc(48); }
APART void *in_array(void) { return malloc(48); }
APART void *in_structure(void) { return malloc(48); }
APART void *overwritten(void) { return malloc(48); }
APART void keep(void) {
  static void *volatile own;
  own = in_function();
}
static APART void build(void) {
  initialised = in_initialised();
  uninitialised = in_uninitialised();
  keep();
  array[0] = in_array(), array[500] = in_array(), array[999] = in_array();
  structure.block = in_structure();
  last = overwritten(), last = overwritten(), last = 0;
}
int main(void) {
  build();
  wait_to_be_seen();
}
