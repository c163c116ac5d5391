// A cache that grows on each request, one that stays, and one whose blocks are replaced.
// leaks: frame=new_session kind=reachable
// grows: holder=program!g_cache by=1008000 collects=new_session count=1000
#include "graph.h"
#include <signal.h>
enum { STEP = 1000, SESSION = 1000 };
struct cache { void **table; long count; };
static struct cache *g_cache;
static void *volatile g_steady[STEP];
static void *g_replaced[STEP];
static volatile sig_atomic_t asked;
static void ask(int signal) { asked++; }
APART void *new_session(void) { return calloc(1, SESSION); }
APART void *new_entry(void) { return calloc(1, SESSION); }
static APART void grow(struct cache *cache) {
  cache->table = realloc(cache->table, (cache->count + STEP) * sizeof *cache->table);
  for (int number = 0; number < STEP; number++) cache->table[cache->count++] = new_session();
  for (int number = 0; number < STEP; number++) {
    free(g_replaced[number]);
    g_replaced[number] = new_entry();
  }
}
static APART void build(void) {
  g_cache = calloc(1, sizeof *g_cache);
  for (int number = 0; number < STEP; number++) g_steady[number] = new_entry();
  grow(g_cache);
}
int main(void) {
  struct sigaction action = {.sa_handler = ask};
  sigaction(SIGUSR1, &action, 0);
  build();
  say_who();
  forget();
  (void)!write(1, ready_line, strlen(ready_line));
  // Held by a live frame, while its blocks are visited.
  struct cache *cache = g_cache;
  for (int done = 0;;) {
    if (done == asked) {
      usleep(1000);
      continue;
    }
    grow(cache);
    done++;
    dprintf(1, "grown %d\n", done);
  }
}
