// Blocks held only by memory besides heap, stacks and the program's own data, or only by the
// kernel.
// build: -ldl -lrt
// leaks: frame=in_data kind=reachable count=1
// leaks: frame=in_bss kind=reachable count=1
// leaks: frame=in_constants kind=reachable count=1
// leaks: frame=in_mapping kind=reachable count=1
// leaks: frame=in_locked_mapping kind=reachable count=1
// leaks: frame=in_shared kind=reachable count=1
// leaks: frame=in_brk kind=reachable count=1
// leaks: frame=in_environment kind=reachable count=1
// leaks: frame=in_exit_list kind=reachable count=1
// leaks: frame=in_epoll kind=reachable count=1
// leaks: frame=in_timer kind=reachable count=1
// leaks: frame=in_file_page kind=reachable count=1
// leaks: frame=held_by_block_with_hole kind=reachable count=1
// leaks: frame=with_tag kind=possible count=1
// leaks: frame=in_packed kind=possible count=1
// leaks: frame=in_slack kind=possible count=1
// leaks: frame=in_code kind=possible count=1
// leaks: frame=in_freed kind=definite count=1
// leaks: frame=xored kind=definite count=1
#include "graph.h"
#include <malloc.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#define MAKER(name) APART void *name(void) { void *p = malloc(64); __asm__ volatile("" : "+r"(p)); return p; }
MAKER(in_data) MAKER(in_bss) MAKER(in_constants) MAKER(in_mapping) MAKER(in_locked_mapping) MAKER(in_shared)
MAKER(in_brk) MAKER(in_environment) MAKER(in_exit_list) MAKER(in_epoll) MAKER(in_timer) MAKER(in_file_page)
MAKER(held_by_block_with_hole) MAKER(with_tag) MAKER(in_packed) MAKER(in_slack) MAKER(in_code) MAKER(in_freed)
MAKER(xored)
static void *volatile data = (void *)1;
static void *volatile bss;
static struct { char pad[4096]; void *p; char end[4096]; } constants __attribute__((aligned(4096)));
static char *volatile holder, *volatile packed, *volatile short_one;
static volatile uint64_t tagged;
static void at_exit(int status, void *argument) {}
int on_exit(void (*)(int, void *), void *);
static void *page(int protection, int flags, int descriptor) {
  return mmap(0, 8192, protection, flags, descriptor, 0);
}
static APART void build(char *file) {
  data = in_data();
  bss = in_bss();
  constants.p = in_constants();
  mprotect(&constants, 8192, PROT_READ);
  void **p = page(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  p[9] = in_mapping();
  p = page(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  p[9] = in_locked_mapping();
  mprotect(p, 8192, PROT_NONE);
  p = page(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
  p[9] = in_shared();
  p = sbrk(4096);
  p[9] = in_brk();
  char **list = calloc(3, sizeof *list);
  list[0] = strcpy(in_environment(), "A=B");
  environ = list;
  on_exit(at_exit, in_exit_list());
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = in_epoll()};
  int pipes[2];
  (void)!pipe(pipes);
  epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, pipes[0], &event);
  event.data.ptr = 0;
  struct sigevent notice = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_ptr = in_timer()};
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, &notice, &timer);
  notice.sigev_value.sival_ptr = 0;
  FILE *stream = fopen(file, "r");
  p = page(PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(stream));
  fclose(stream);
  p[3] = in_file_page();
  mprotect(p, 8192, PROT_READ);
  holder = malloc(5 * 4096);
  char *hole = (char *)(((uintptr_t)holder + 4095) & ~4095ul);
  *(void **)(hole + 4096 + 16) = held_by_block_with_hole();
  mprotect(hole, 4096, PROT_NONE);
  tagged = (uint64_t)(uintptr_t)with_tag() | 0xabcdull << 48;
  packed = calloc(1, 32);
  void *q = in_packed();
  memcpy(packed + 5, &q, sizeof q);
  short_one = malloc(17);
  *(void **)(short_one + 16) = 0;
  if (malloc_usable_size(short_one) >= 24) { q = in_slack(); memcpy(short_one + 16, &q, 8); }
  char *code = page(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  q = in_code();
  code[0] = 0x48; code[1] = (char)0xb8;
  memcpy(code + 2, &q, sizeof q);
  void **gone = malloc(3000);
  gone[100] = in_freed();
  free(gone);
  static volatile uintptr_t hidden;
  hidden = HIDDEN(xored());
  q = 0;
}
int main(int argc, char **argv) { build(argv[0]); wait_to_be_seen(); }
