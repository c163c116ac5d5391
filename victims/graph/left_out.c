// A cache in memory that core files leave out, one in a mapped file, one in memory of a removed
// file, and ten leaked blocks. From a core it is unknown which of them are held. (Run by
// crates/heapr/tests/native_graph/cores.rs; the program makes its file in its working directory.)
// leaks: frame=entry kind=reachable count=300
// leaks: frame=lost kind=definite count=10
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include "graph.h"
void ***cache, ***file, ***memory;
APART void *entry(void) { return calloc(1, 3000); }
APART void *lost(void) { return calloc(1, 500); }
static APART void build(void) {
  cache = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(cache, 1 << 20, MADV_DONTDUMP);
  int there = open("left_out.bin", O_RDWR | O_CREAT, 0600), nowhere = memfd_create("nowhere", 0);
  if (ftruncate(there, 1 << 20) || ftruncate(nowhere, 1 << 20)) exit(3);
  file = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, there, 0);
  memory = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, nowhere, 0);
  for (int i = 0; i < 100; i++) {
    ((void **)cache)[i] = entry();
    ((void **)file)[i] = entry();
    ((void **)memory)[i] = entry();
  }
  for (int i = 0; i < 10; i++) lost();
}
int main(void) { build(); wait_to_be_seen(); }
