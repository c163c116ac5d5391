// Waiting coroutines on stacks of all kinds; a thread in a signal handler on a stack of its own; a
// thread on a stack that the program allocated.
// build: -pthread
// leaks: frame=of_mapped_coroutine kind=reachable count=1
// leaks: frame=of_heap_coroutine kind=reachable count=1
// leaks: frame=below_handler kind=reachable count=1
// leaks: frame=in_handler kind=reachable count=1
// leaks: frame=on_given_stack kind=reachable count=1
#include "graph.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#define MAKER(name) APART void *name(void) { void *p = malloc(64); __asm__ volatile("" : "+r"(p)); return p; }
MAKER(of_mapped_coroutine) MAKER(of_heap_coroutine) MAKER(below_handler) MAKER(in_handler) MAKER(on_given_stack)
static ucontext_t home, mapped, heap;
static volatile int ready;
static void mapped_body(void) {
  void *volatile held = of_mapped_coroutine();
  for (;;) { swapcontext(&mapped, &home); held = held; }
}
static void heap_body(void) {
  void *volatile held = of_heap_coroutine();
  for (;;) { swapcontext(&heap, &home); held = held; }
}
static void handler(int signal) {
  void *volatile held = in_handler();
  forget();
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  for (;;) { pause(); held = held; }
}
static void *handler_thread(void *unused) {
  stack_t own = {.ss_sp = mmap(0, 256 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), .ss_size = 256 << 10};
  sigaltstack(&own, 0);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR2, &action, 0);
  void *volatile held = below_handler();
  forget();
  raise(SIGUSR2);
  return held;
}
static void *given_thread(void *unused) {
  void *volatile held = on_given_stack();
  forget();
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  for (;;) { pause(); held = held; }
}
static APART void build(void) {
  getcontext(&mapped);
  mapped.uc_stack.ss_sp = mmap(0, 256 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mapped.uc_stack.ss_size = 256 << 10;
  makecontext(&mapped, mapped_body, 0);
  swapcontext(&home, &mapped);
  getcontext(&heap);
  heap.uc_stack.ss_sp = malloc(64 << 10);
  heap.uc_stack.ss_size = 64 << 10;
  makecontext(&heap, heap_body, 0);
  swapcontext(&home, &heap);
  pthread_t t;
  pthread_create(&t, 0, handler_thread, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, aligned_alloc(4096, 256 << 10), 256 << 10);
  pthread_create(&t, &attributes, given_thread, 0);
  while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < 2) usleep(1000);
}
int main(void) { build(); wait_to_be_seen(); }
