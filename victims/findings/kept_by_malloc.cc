// Has memory that no block holds, waits for a file, and then works with little: arguments are the
// file, and `freed` (malloc keeps it) or `mapped` (a mapping of the program's own).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "pace.h"

static const size_t kBytes = 72u << 20;

struct Job { char work[2000]; };

int main(int count, char** arguments) {
  if (count != 3) return 2;
  std::vector<std::unique_ptr<Job>> survivors;
  std::unique_ptr<Job> last;
  if (std::string(arguments[2]) == "freed") {
    std::vector<std::unique_ptr<Job>> jobs;
    for (size_t bytes = 0; bytes < kBytes; bytes += sizeof(Job)) {
      jobs.push_back(std::make_unique<Job>());
      std::memset(jobs.back()->work, 1, sizeof(Job));
    }
    // The last block keeps the heap from being trimmed.
    last = std::move(jobs.back());
  } else {
    void* own = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED) return 1;
    std::memset(own, 1, kBytes);
  }
  std::puts("ready");
  std::fflush(stdout);
  while (access(arguments[1], F_OK) != 0) pace(0, 1);
  for (int round = 0; round < 480; ++round) {
    survivors.resize(1 + round % 7);
    survivors.back() = std::make_unique<Job>();
    pace(round, 120);
  }
  _Exit(0);
}
