// A request's arena that grows by chunks and is freed with it; requests differ in size.
// build: c++
// finding: none
#include <cstdio>
#include <memory>
#include <vector>

#include "pace.h"

struct Arena {
  std::vector<std::unique_ptr<char[]>> chunks;
  size_t left = 0;
  __attribute__((noinline)) char* take(size_t bytes) {
    if (bytes > left) { chunks.push_back(std::make_unique<char[]>(8192)); left = 8192; }
    left -= bytes;
    return chunks.back().get() + left;
  }
};

int main() {
  size_t sum = 0;
  unsigned random = 7;
  for (int request = 0; request < 3000; ++request) {
    Arena arena;
    random = random * 1103515245 + 12345;
    const int parts = 20 + random / 65536 % 400;
    for (int part = 0; part < parts; ++part) sum += reinterpret_cast<size_t>(arena.take(100)) & 1;
    pace(request, 3000);
  }
  std::printf("%zu\n", sum);
  return 0;
}
