// Memory that the kernel or the program treats specially: pages that a fork leaves out or wipes, a
// huge page, the last of very many mappings, a queue of the kernel, the program's own arenas.
// leaks: frame=in_unforked kind=reachable count=1
// leaks: frame=in_wiped kind=reachable count=1
// leaks: frame=in_huge_page kind=reachable count=1
// leaks: frame=in_last_mapping kind=reachable count=1
// leaks: frame=in_kernel_queue kind=reachable count=1
// leaks: frame=in_kept_arena kind=reachable count=1
// leaks: frame=known_by_an_object kind=possible count=1
// leaks: frame=in_that_arena kind=possible count=1
// leaks: frame=of_nobody kind=definite count=1
#include "graph.h"
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#define MAKER(name, bytes) APART void *name(void) { void *p = calloc(1, bytes); __asm__ volatile("" : "+r"(p)); return p; }
MAKER(in_unforked, 60) MAKER(in_wiped, 61) MAKER(in_huge_page, 62) MAKER(in_last_mapping, 63) MAKER(in_kernel_queue, 64)
MAKER(kept_arena, 60000) MAKER(in_kept_arena, 65) MAKER(known_by_an_object, 60001) MAKER(in_that_arena, 66) MAKER(of_nobody, 67)
enum { PAGE = 4096, MAPPINGS = 20000, HUGE_PAGE = 2 << 20 };
static char *mapped(size_t bytes) {
  return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
// Queues a request that the kernel does not read yet.
static void queue(void *block) {
  static void *volatile where_there_is_no_queue;
  struct io_uring_params setup = {0};
  int ring = syscall(SYS_io_uring_setup, 4, &setup);
  struct io_uring_sqe *entries = MAP_FAILED;
  if (ring >= 0)
    entries = mmap(0, 4 * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
  if (entries == MAP_FAILED) where_there_is_no_queue = block;
  else entries[0].user_data = (uintptr_t)block;
}
static void *volatile arena;
static void *volatile object;
static APART void build(void) {
  char *page = mapped(PAGE);
  madvise(page, PAGE, MADV_DONTFORK);
  *(void **)(page + 80) = in_unforked();
  page = mapped(PAGE);
  madvise(page, PAGE, MADV_WIPEONFORK);
  *(void **)(page + 80) = in_wiped();
  char *huge = mapped(2 * HUGE_PAGE);
  huge = (char *)(((uintptr_t)huge + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
  madvise(huge, HUGE_PAGE, MADV_HUGEPAGE);
  *(void **)(huge + HUGE_PAGE - 160) = in_huge_page();
  char *many = mapped((size_t)MAPPINGS * PAGE);
  for (int number = 0; number < MAPPINGS; number += 2) mprotect(many + (size_t)number * PAGE, PAGE, PROT_READ);
  *(void **)(many + (size_t)(MAPPINGS - 1) * PAGE) = in_last_mapping();
  queue(in_kernel_queue());
  arena = kept_arena();
  *(void **)((char *)arena + 30000) = in_kept_arena();
  char *other = known_by_an_object();
  *(void **)(other + 40008) = in_that_arena();
  object = other + 40000;
  of_nobody();
}
int main(void) { build(); wait_to_be_seen(); }
