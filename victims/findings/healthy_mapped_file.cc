// Reads a file through a mapping, and gives the pages back before its work goes on.
// build: c++
// finding: none
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pace.h"

static const size_t kBytes = 48u << 20;

static char page[1 << 20];

int main(int, char** arguments) {
  char path[4096];
  std::snprintf(path, sizeof path, "%s.heapr_given_back_XXXXXX", arguments[0]);
  int file = mkstemp(path);
  if (file < 0) return 1;
  std::memset(page, 7, sizeof page);
  for (size_t at = 0; at < kBytes; at += 1 << 20) {
    if (pwrite(file, page, 1 << 20, at) != 1 << 20) return 1;
  }
  char* data = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0));
  if (data == MAP_FAILED) return 1;
  size_t sum = 0;
  for (size_t at = 0; at < kBytes; at += 4096) sum += data[at];
  munmap(data, kBytes);
  unlink(path);
  for (int round = 0; round < 480; ++round) {
    void* volatile block = std::malloc(1000 + round % 7);
    std::free(block);
    pace(round, 120);
  }
  std::printf("%zu\n", sum);
  return 0;
}
