// Each request starts a thread that waits for work that never comes.
// build: c++
// finding: growth in threads are live
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

static std::mutex lock;
static std::condition_variable work;

__attribute__((noinline)) void fetch_all() {
  std::thread([] {
    std::vector<char> buffer(1000);
    std::unique_lock<std::mutex> locked(lock);
    work.wait(locked, [] { return false; });
  }).detach();
}

int main() {
  for (int request = 0; request < 120; ++request) {
    fetch_all();
    // (Threads of a program that runs shorter than some seconds are not judged.)
    usleep(20000);
  }
  std::fflush(stdout);
  std::_Exit(0);
}
