// Each page of a burst of jobs has a small survivor: the jobs are gone, and their memory stays
// resident.
// build: c++
// finding: resident in
#include <cstdio>
#include <memory>
#include <vector>
#include <time.h>

#include "pace.h"

struct Job { char work[3900]; };

__attribute__((noinline)) size_t burst(std::vector<std::unique_ptr<int>>& survivors) {
  std::vector<std::unique_ptr<Job>> jobs;
  for (int job = 0; job < 12000; ++job) {
    jobs.push_back(std::make_unique<Job>());
    jobs.back()->work[job % 3900] = 1;
    survivors.push_back(std::make_unique<int>(job));
  }
  return jobs.size();
}

int main() {
  std::vector<std::unique_ptr<int>> survivors;
  size_t sum = burst(survivors);
  for (int look = 0; look < 1000; ++look) {
    std::vector<char> page(3000);
    sum += page.size();
    pace(look, 120);
    if (look == 900) break;
  }
  // The last block before the top of the heap, so that the heap is not trimmed.
  survivors.push_back(std::make_unique<int>(1));
  std::printf("%zu\n", sum + survivors.size());
  return 0;
}
