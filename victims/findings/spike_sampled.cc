// A burst of requests leaves a few blocks in each page, and the program waits: samples tell it, too.
// build: c++
// options: --sample 64K
// finding: resident in burst
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "pace.h"

struct Job { char work[3900]; };

__attribute__((noinline)) size_t burst(std::vector<std::unique_ptr<int>>& survivors) {
  std::vector<std::unique_ptr<Job>> jobs;
  for (int job = 0; job < 12000; ++job) {
    jobs.push_back(std::make_unique<Job>());
    jobs.back()->work[job % 3900] = 1;
    survivors.push_back(std::make_unique<int>(job));
    pace(job, 12000);
  }
  return jobs.size();
}

int main() {
  std::vector<std::unique_ptr<int>> survivors;
  size_t sum = burst(survivors);
  // No allocation happens in the wait, so that no event marks its end.
  for (int pause = 0; pause < 600; ++pause) pace(0, 1);
  std::printf("%zu\n", sum);
  std::fflush(stdout);
  _Exit(0);
}
