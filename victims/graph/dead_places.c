// Pointers in dead memory, and in memory that only looks dead: unused stack, hundreds of thread
// keys, blocks that a key's destructor has freed, a stack with a guard page, a thread that has not
// run yet.
// build: -pthread
// leaks: frame=in_dead_frame kind=definite count=1
// leaks: frame=in_dead_frame_of_thread kind=definite count=1
// leaks: frame=in_many_keys kind=reachable
// leaks: frame=freed_by_destructor kind=reachable
// leaks: frame=behind_guard kind=reachable
// leaks: frame=of_detached_end kind=definite count=1
#include "graph.h"
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#define MAKER(name, size) APART void *name(void) { void *p = malloc(size); __asm__ volatile("" : "+r"(p)); return p; }
MAKER(in_dead_frame, 60) MAKER(in_dead_frame_of_thread, 61) MAKER(in_many_keys, 62) MAKER(freed_by_destructor, 63)
MAKER(behind_guard, 64) MAKER(of_detached_end, 65)
static pthread_key_t keys[300], freeing;
static volatile int ready;
// Reaches deeper than all later calls.
static APART void deep(void *(*make)(void)) {
  void *volatile frame[64 << 10];
  frame[100] = make();
  __asm__ volatile("" : : "r"(frame) : "memory");
}
static void *key_thread(void *unused) {
  for (int number = 0; number < 300; number++) pthread_setspecific(keys[number], in_many_keys());
  deep(in_dead_frame_of_thread);
  forget();
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  for (;;) pause();
}
static void *ending_thread(void *unused) {
  pthread_setspecific(freeing, freed_by_destructor());
  return 0;
}
static void *detached_thread(void *unused) {
  void *volatile held = of_detached_end();
  (void)held;
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  return 0;
}
static ucontext_t home, guarded;
static void guarded_body(void) {
  void *volatile held = behind_guard();
  for (;;) { swapcontext(&guarded, &home); held = held; }
}
static APART void build(void) {
  for (int number = 0; number < 300; number++) pthread_key_create(&keys[number], 0);
  pthread_key_create(&freeing, free);
  pthread_t thread;
  pthread_create(&thread, 0, ending_thread, 0);
  pthread_join(thread, 0);
  pthread_create(&thread, 0, detached_thread, 0);
  pthread_detach(thread);
  while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < 1) usleep(1000);
  pthread_create(&thread, 0, key_thread, 0);
  while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < 2) usleep(1000);
  char *stack = mmap(0, 128 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(stack, 4096, PROT_NONE);
  getcontext(&guarded);
  guarded.uc_stack.ss_sp = stack;
  guarded.uc_stack.ss_size = 128 << 10;
  makecontext(&guarded, guarded_body, 0);
  swapcontext(&home, &guarded);
  deep(in_dead_frame);
}
int main(void) { build(); wait_to_be_seen(); }
