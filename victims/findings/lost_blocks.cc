// Sessions that are opened and forgotten: no pointer to them is left anywhere.
// build: c++
// options: --graph-at-exit
// finding: growth in nothing leads to
#include <cstdio>
#include <cstring>

#include "pace.h"

struct Session { char name[480]; };

__attribute__((noinline)) static size_t open_session(int number) {
  Session* session = new Session;
  std::snprintf(session->name, sizeof session->name, "session %d", number);
  return std::strlen(session->name);
}

int main() {
  size_t sum = 0;
  for (int number = 0; number < 4000; ++number) {
    sum += open_session(number);
    pace(number, 4000);
  }
  std::printf("%zu\n", sum);
  return 0;
}
