// Sessions that are opened and stay in a list: the list leads to all of them.
// build: c++
// options: --graph-at-exit
// finding: growth in open_session
// untold: nothing leads to
#include <cstdio>
#include <vector>

#include "pace.h"

struct Session { char name[480]; };

static std::vector<Session*>& sessions = *new std::vector<Session*>;

__attribute__((noinline)) static void open_session(int number) {
  sessions.push_back(new Session);
  std::snprintf(sessions.back()->name, sizeof(Session), "session %d", number);
}

int main() {
  sessions.reserve(4000);
  for (int number = 0; number < 4000; ++number) {
    open_session(number);
    pace(number, 4000);
  }
  std::printf("%zu\n", sessions.size());
  return 0;
}
