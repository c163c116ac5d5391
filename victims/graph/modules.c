// Libraries loaded while the program runs, also in another linker namespace: their data and their
// thread-local variables, of several threads.
// build: -pthread -ldl
// library: module_with_data.c
// leaks: frame=of_module_data kind=reachable count=6
// leaks: frame=of_module_local kind=reachable count=6
// leaks: frame=forgotten_by_module kind=definite count=3
#include "graph.h"
#include <dlfcn.h>
#include <pthread.h>
static volatile int ready;
static void (*fill_in_thread)(void);
static void *thread(void *unused) {
  fill_in_thread();
  forget();
  ready = 1;
  for (;;) pause();
}
static APART void build(const char *library) {
  void (*fill)(void) = (void (*)(void))dlsym(dlopen(library, RTLD_NOW), "fill");
  fill();
  // The second call, of another thread, overwrites the reference of the first in the module's data.
  char copy[4096];
  snprintf(copy, sizeof copy, "%s.copy.so", library);
  char command[9000];
  snprintf(command, sizeof command, "cp '%s' '%s'", library, copy);
  (void)!system(command);
  fill_in_thread = (void (*)(void))dlsym(dlopen(copy, RTLD_NOW), "fill");
  pthread_t t;
  pthread_create(&t, 0, thread, 0);
  while (!ready) usleep(1000);
  void *apart = dlmopen(LM_ID_NEWLM, library, RTLD_NOW);
  if (!apart) { fprintf(stderr, "%s\n", dlerror()); exit(99); }
  ((void (*)(void))dlsym(apart, "fill"))();
}
int main(int argc, char **argv) { build(argv[1]); wait_to_be_seen(); }
