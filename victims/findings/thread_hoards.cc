// Each of twelve threads keeps a scratch buffer as large as its largest job, and one job was large.
// build: c++
// finding: idle in Worker::run
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "pace.h"

struct Worker {
  __attribute__((noinline)) static size_t& run(size_t bytes) {
    thread_local std::vector<char> scratch;
    thread_local size_t used = 0;
    if (scratch.size() < bytes) scratch.resize(bytes);
    scratch[bytes - 1] = 1;
    return used += bytes;
  }
};

int main() {
  std::vector<std::thread> threads;
  std::vector<size_t> sums(12);
  std::atomic<size_t> done{0};
  for (size_t number = 0; number < sums.size(); ++number) {
    threads.emplace_back([number, &sums, &done] {
      for (int job = 0; job < 120; ++job) {
        std::vector<char> request(2000 + job % 7);
        sums[number] = Worker::run(job == 5 ? 900000 : 3000) + request.size();
        // (Half a second of stillness is asked for: a program that ends sooner waits for nothing.)
        for (int pause = 0; pause < 5; ++pause) pace(job, 120);
      }
      // The threads of a pool stay alive.
      for (++done; done < sums.size();) pace(0, 1);
    });
  }
  for (auto& thread : threads) thread.join();
  std::printf("%zu\n", sums[0]);
  return 0;
}
