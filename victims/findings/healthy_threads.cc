// A pool of threads that is started at once, and threads for single requests that end.
// build: c++
// finding: none
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "pace.h"

static std::mutex lock;
static std::condition_variable work;

int main() {
  for (int number = 0; number < 48; ++number) {
    std::thread([] {
      std::vector<char> buffer(1000);
      std::unique_lock<std::mutex> locked(lock);
      work.wait(locked, [] { return false; });
    }).detach();
  }
  for (int request = 0; request < 120; ++request) {
    std::thread([] { std::vector<char> buffer(1000); }).join();
    pace(request, 120);
  }
  std::fflush(stdout);
  std::_Exit(0);
}
