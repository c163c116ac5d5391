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

static char page[1 << 20];

int main(int, char** arguments) {
  // The file lies beside the program: a folder for temporary files may be in memory.
  char path[4096];
  std::snprintf(path, sizeof path, "%s.heapr_mapped_file_XXXXXX", arguments[0]);
  int file = mkstemp(path);
  if (file < 0) return 1;
  std::memset(page, 7, sizeof page);
  for (size_t at = 0; at < kBytes; at += 1 << 20) {
    if (pwrite(file, page, 1 << 20, at) != 1 << 20) return 1;
  }
  char* data = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0));
  if (data == MAP_FAILED) return 1;
  size_t sum = 0;
  for (int round = 0; round < 24; ++round) {
    for (size_t at = 0; at < kBytes; at += 4096) sum += data[at];
    void* volatile block = std::malloc(1000 + round);
    std::free(block);
    usleep(50000);
  }
  std::printf("%zu\n", sum);
  unlink(path);
  return 0;
}
