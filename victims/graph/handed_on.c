// Blocks that threads pass on by a queue: some wait in it, some were taken and forgotten.
// build: -pthread
// leaks: frame=made kind=definite count=30
// leaks: frame=link_of_queue kind=reachable count=20
#include "graph.h"
#include <pthread.h>
struct link { struct link *next; void *block; };
static struct link *volatile queue;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int taken;
APART void *made(void) { return malloc(56); }
APART struct link *link_of_queue(void) { return malloc(sizeof(struct link)); }
APART void put(void) {
  struct link *link = link_of_queue();
  link->block = made();
  link->next = queue;
  queue = link;
}
APART void take(void) {
  struct link *link = queue;
  queue = link->next;
  free(link);
}
static void *producer(void *unused) {
  for (int number = 0; number < 50; number++) {
    pthread_mutex_lock(&lock);
    put();
    pthread_mutex_unlock(&lock);
  }
  return 0;
}
static void *consumer(void *unused) {
  while (taken < 30) {
    pthread_mutex_lock(&lock);
    if (queue) take(), taken++;
    pthread_mutex_unlock(&lock);
  }
  forget();
  return 0;
}
int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], 0, producer, 0);
  pthread_create(&threads[1], 0, consumer, 0);
  for (int number = 0; number < 2; number++) pthread_join(threads[number], 0);
  wait_to_be_seen();
}
