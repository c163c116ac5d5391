// Blocks that begin with text, and blocks that do not: what is written of their contents, if it is asked for.
// leaks: frame=held_text kind=reachable count=40
// leaks: frame=lost_text kind=definite count=2
// leaks: frame=no_text kind=reachable count=2
#include "graph.h"
static char *volatile held[40];
static void *volatile other[2];
static char *volatile last;
APART char *held_text(int number) {
  char *text = malloc(100);
  sprintf(text, "held text %d of many", number);
  memset(text + strlen(text) + 1, 1, 10);
  return text;
}
APART char *lost_text(const char *what) { return strcpy(malloc(strlen(what) + 1), what); }
APART void *no_text(void) { return memset(malloc(80), 0xfe, 80); }
static APART void build(void) {
  for (int number = 0; number < 40; number++) held[number] = held_text(number);
  other[0] = no_text(), other[1] = no_text();
  last = lost_text("a secret that is lost"), last = lost_text("größer als vorher"), last = 0;
}
int main(void) {
  build();
  forget();
  wait_to_be_seen();
}
