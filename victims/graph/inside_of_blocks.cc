// Pointers into blocks that programs ordinarily make, and others that they do not.
// leaks: frame=length_prefix kind=reachable count=1
// leaks: frame=array_of_objects kind=reachable count=1
// leaks: frame=empty_array kind=reachable count=1
// leaks: frame=second_base kind=reachable count=1
// leaks: frame=counted_string kind=reachable count=1
// leaks: frame=dynamic_string kind=reachable count=6
// leaks: frame=header_behind kind=reachable count=2
// leaks: frame=no_header_behind kind=possible count=1
// leaks: frame=no_dynamic_string kind=possible count=1
// leaks: frame=no_length_prefix kind=possible count=1
// leaks: frame=no_counted_string kind=possible count=1
// leaks: frame=no_second_base kind=possible count=1
// leaks: frame=one_past kind=possible count=1
#include "graph.h"
struct One { virtual ~One() {} long a = 1; };
struct Two { virtual ~Two() {} long b = 2; };
struct Both : One, Two { long c = 3; };
struct Counted { ~Counted() {} long x = 0; };
void *volatile roots[20];
APART char *length_prefix() { uint64_t *p = (uint64_t *)malloc(8 + 23); p[0] = 23; return (char *)(p + 1); }
APART char *no_length_prefix() { uint64_t *p = (uint64_t *)malloc(8 + 23); p[0] = 77; return (char *)(p + 1); }
APART Counted *array_of_objects() { return new Counted[7]; }
APART Counted *empty_array(int n) { return new Counted[n]; }
APART Two *second_base() { return new Both; }
APART char *no_second_base() { Both *p = new Both; return (char *)p + 40 - 16; }
APART char *counted(size_t capacity, size_t told) {
  size_t *p = (size_t *)malloc(24 + capacity + 1);
  p[0] = 3; p[1] = told; p[2] = 0;
  return (char *)(p + 3);
}
APART char *counted_string() { char *p = counted(40, 40); __asm__ volatile("" : "+r"(p)); return p; }
APART char *no_counted_string() { char *p = counted(40, 50); __asm__ volatile("" : "+r"(p)); return p; }
// Text with a header as redis has it: length, room and kind, packed before the text.
template <typename Count> APART char *described(char kind, Count length, Count room) {
  struct __attribute__((packed)) Head { Count length, room; char kind; };
  Head *p = (Head *)malloc(sizeof(Head) + room + 1);
  *p = Head{length, room, kind};
  return (char *)(p + 1);
}
APART char *dynamic_string(int kind) {
  if (kind == 1) return described<uint8_t>(1, 10, 90);
  if (kind == 2) return described<uint16_t>(2, 300, 300);
  if (kind == 3) return described<uint32_t>(3, 70000, 70100);
  if (kind == 4) return described<uint8_t>(1, 0, 0);
  if (kind == 5) {
    // The text also uses the slack of its block.
    char *p = (char *)malloc(4);
    memcpy(p, "\4\4\1*10\r", 8);
    return p + 3;
  }
  char *p = (char *)malloc(1 + 20 + 1);
  p[0] = 20 << 3;
  return p + 1;
}
APART char *no_dynamic_string() { char *p = described<uint8_t>(1, 91, 90); __asm__ volatile("" : "+r"(p)); return p; }
// A page as SQLite has it, with a length before it and without.
APART char *header_behind(size_t before) {
  char *p = (char *)malloc(before + 512 + 64);
  if (before) *(uint64_t *)p = 512 + 64;
  *(char **)(p + before + 512) = p + before;
  return p + before + 512;
}
APART char *no_header_behind() {
  char *p = (char *)malloc(512 + 64);
  *(char **)(p + 512) = p + 16;
  return p + 512;
}
APART char *one_past() { char *p = (char *)malloc(48); return p + 48; }
static APART void build(int n) {
  roots[0] = length_prefix();
  roots[1] = array_of_objects();
  roots[2] = empty_array(n);
  roots[3] = second_base();
  roots[4] = counted_string();
  roots[5] = no_length_prefix();
  roots[6] = no_counted_string();
  roots[7] = no_second_base();
  roots[8] = one_past();
  for (int kind = 0; kind < 5; kind++) roots[9 + kind] = dynamic_string(kind);
  roots[18] = dynamic_string(5);
  roots[15] = header_behind(0);
  roots[16] = header_behind(8);
  roots[17] = no_header_behind();
  roots[14] = no_dynamic_string();
}
int main(int argc, char **) { build(argc - 1); wait_to_be_seen(); }
