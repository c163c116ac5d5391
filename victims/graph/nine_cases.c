// The nine ways in which two blocks can be held, after memcheck's table.
//   root -> B; root -> A -> B; B; A -> B; root ~> B; root -> A ~> B; root ~> A -> B; root ~> A ~> B; A ~> B
// where ~> leads to the middle.
// leaks: frame=b1 kind=reachable count=1
// leaks: frame=a2 kind=reachable count=1
// leaks: frame=b2 kind=reachable count=1
// leaks: frame=b3 kind=definite count=1 bytes=40
// leaks: frame=a4 kind=definite count=1 bytes=40 retained=80
// leaks: frame=b4 kind=indirect count=1
// leaks: frame=b5 kind=possible count=1
// leaks: frame=a6 kind=reachable count=1
// leaks: frame=b6 kind=possible count=1
// leaks: frame=a7 kind=possible count=1
// leaks: frame=b7 kind=possible count=1
// leaks: frame=a8 kind=possible count=1
// leaks: frame=b8 kind=possible count=1
// leaks: frame=a9 kind=definite count=1
// leaks: frame=b9 kind=indirect count=1
#include "graph.h"
char *volatile roots[10];
#define MAKER(name) APART char **name(void) { char **p = calloc(1, 40); __asm__ volatile("" : "+r"(p)); return p; }
MAKER(b1) MAKER(a2) MAKER(b2) MAKER(b3) MAKER(a4) MAKER(b4) MAKER(b5) MAKER(a6) MAKER(b6) MAKER(a7) MAKER(b7)
MAKER(a8) MAKER(b8) MAKER(a9) MAKER(b9)
static APART void build(void) {
  char **a;
  roots[1] = (char *)b1();
  roots[2] = (char *)(a = a2()); *a = (char *)b2();
  b3();
  a = a4(); *a = (char *)b4();
  roots[5] = (char *)b5() + 20;
  roots[6] = (char *)(a = a6()); *a = (char *)b6() + 20;
  a = a7(); *a = (char *)b7(); roots[7] = (char *)a + 20;
  a = a8(); *a = (char *)b8() + 20; roots[8] = (char *)a + 20;
  a = a9(); *a = (char *)b9() + 20;
}
int main(void) { build(); wait_to_be_seen(); }
