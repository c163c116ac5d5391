// Reads a database through a mapping: its pages are most of the resident memory.
// build: c++
// finding: resident in heapr_mapped_file
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t kBytes = 96u << 20;

int main() {
  // (A folder for temporary files in memory would make it no file.)
  char path[] = "/var/tmp/heapr_mapped_file_XXXXXX";
  int file = mkstemp(path);
  if (file < 0) return 1;
  char* page = static_cast<char*>(std::malloc(1 << 20));
  std::memset(page, 7, 1 << 20);
  for (size_t at = 0; at < kBytes; at += 1 << 20) {
    if (pwrite(file, page, 1 << 20, at) != 1 << 20) return 1;
  }
  char* data = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0));
  if (data == MAP_FAILED) return 1;
  size_t sum = 0;
  for (int round = 0; round < 24; ++round) {
    for (size_t at = 0; at < kBytes; at += 4096) sum += data[at];
    std::free(std::malloc(1000 + round));
    usleep(50000);
  }
  std::printf("%zu\n", sum);
  unlink(path);
  std::free(page);
  return 0;
}
