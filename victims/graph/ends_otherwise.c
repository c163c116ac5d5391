// Fifty leaked blocks, and an end without exit: by _exit, quick_exit or a signal, as the first
// letter of the argument says. No graph is taken, and a notice says so. (Run by
// crates/heapr/tests/native_graph/main.rs.)
#include <signal.h>
#include <unistd.h>
#include "graph.h"
APART char *lost(void) { char *volatile p = malloc(700); p[0] = 1; return 0; }
int main(int count, char **arguments) {
  for (int i = 0; i < 50; i++) lost();
  char how = count > 1 ? arguments[1][0] : 'e';
  if (how == '_') _exit(0);
  if (how == 'q') quick_exit(0);
  if (how == 's') raise(SIGTERM);
  return 0;
}
