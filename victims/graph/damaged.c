// A heap that was overwritten: the size of a free chunk, and the header of a chunk in use, make no
// sense. Blocks known from the recording are reported all the same.
// leaks: frame=forgotten_before_damage kind=definite count=1
// leaks: frame=forgotten_behind_damage kind=definite count=1
// leaks: frame=kept_behind_damage kind=reachable count=1
#include "graph.h"
static void *volatile kept;
#define MAKER(name, bytes) APART void *name(void) { void *p = malloc(bytes); __asm__ volatile("" : "+r"(p)); return p; }
MAKER(forgotten_before_damage, 100) MAKER(freed, 3000) MAKER(overrun, 200) MAKER(forgotten_behind_damage, 101)
MAKER(kept_behind_damage, 102)
static APART void build(void) {
  static size_t *volatile damaged, *volatile over;
  forgotten_before_damage();
  damaged = freed();
  over = overrun();
  forgotten_behind_damage();
  kept = kept_behind_damage();
  free(damaged);
  damaged[-1] = 0x1234567887654321;
  over[-1] = ~0ul;
}
int main(void) { build(); wait_to_be_seen(); }
