// Blocks that begin with text, blocks with text behind a header, and blocks without text, for the
// option that records contents.
// leaks: frame=held_text kind=reachable count=40
// leaks: frame=lost_text kind=definite count=2
// leaks: frame=text_behind kind=reachable count=3
// leaks: frame=no_text kind=reachable count=2
#include "graph.h"
static char *volatile held[40];
static void *volatile other[2];
static void *volatile behind[3];
static char *volatile last;
APART char *held_text(int number) {
  char *text = malloc(100);
  sprintf(text, "held text %d of many", number);
  memset(text + strlen(text) + 1, 1, 10);
  return text;
}
APART char *lost_text(const char *what) { return strcpy(malloc(strlen(what) + 1), what); }
APART void *no_text(void) { return memset(malloc(80), 0xfe, 80); }
// Header as in redis, CPython, and a C++ object with a virtual table and a short string.
APART void *text_behind(int header_bytes, const void *first_word, const char *what) {
  char *block = malloc(200);
  memset(block, 1, 200);
  memcpy(block, &first_word, header_bytes < 8 ? header_bytes : 8);
  strcpy(block + header_bytes, what);
  return block;
}
static APART void build(void) {
  for (int number = 0; number < 40; number++) held[number] = held_text(number);
  behind[0] = text_behind(3, (void *)0x010b0b, "behind redis");
  behind[1] = text_behind(48, (void *)1, "behind python");
  behind[2] = text_behind(16, &last, "behind a table");
  other[0] = no_text(), other[1] = no_text();
  last = lost_text("a secret that is lost"), last = lost_text("größer als vorher"), last = 0;
}
int main(void) {
  build();
  forget();
  wait_to_be_seen();
}
