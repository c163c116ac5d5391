// Thousands of threads, each with a block on its stack and a leaked one.
// build: -pthread
// leaks: frame=on_its_stack kind=reachable
// leaks: frame=forgotten_by_thread kind=definite count=1000 bytes=48000
#include "graph.h"
#include <pthread.h>
enum { THREADS = 1000 };
static int ready;
APART void *on_its_stack(void) { void *p = malloc(49); __asm__ volatile("" : "+r"(p)); return p; }
APART void *forgotten_by_thread(void) { void *p = malloc(48); __asm__ volatile("" : "+r"(p)); return p; }
static void *thread(void *unused) {
  forgotten_by_thread();
  void *volatile held = on_its_stack();
  forget();
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  for (;;) { pause(); held = held; }
}
static APART void build(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  for (int number = 0; number < THREADS; number++) {
    pthread_t made;
    if (pthread_create(&made, &attributes, thread, 0)) exit(99);
  }
  while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < THREADS) usleep(1000);
}
int main(void) { build(); wait_to_be_seen(); }
