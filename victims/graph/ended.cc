// A program that ends: blocks freed at its end, and blocks held until then, are not leaks.
// at-exit
// leaks: frame=given_back_at_end kind=reachable count=1
// leaks: frame=still_held kind=reachable count=1
// leaks: frame=dropped kind=definite count=3 bytes=120 type=Dropped
// leaks: frame=held_by_dropped kind=indirect count=3
#include "graph.h"
#include <memory>
struct Dropped { virtual ~Dropped() {} void *volatile held; long more[3]; };
struct Owner { void *p; ~Owner() { free(p); p = 0; } };
static Owner owner;
void *volatile held;
APART void *given_back_at_end() { void *p = malloc(64); __asm__ volatile("" : "+r"(p)); return p; }
APART void *still_held() { void *p = malloc(64); __asm__ volatile("" : "+r"(p)); return p; }
APART void *held_by_dropped() { void *p = malloc(64); __asm__ volatile("" : "+r"(p)); return p; }
APART Dropped *dropped() { Dropped *p = new Dropped; __asm__ volatile("" : "+r"(p)); return p; }
static APART void build() {
  owner.p = given_back_at_end();
  held = still_held();
  for (int i = 0; i < 3; i++) dropped()->held = held_by_dropped();
}
int main() { build(); forget(); return 0; }
