// The kind of each packet is kept as a view of 16 bytes of its 16 KiB.
// build: c++
// options: --graph-at-exit
// finding: growth in likely slices keep it: the lengths beside the references to 1,000 blocks of it cover 15.6 KiB of 15.6 MiB (16 B of 16.0 KiB each)
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "pace.h"

static std::vector<std::string_view>& kinds = *new std::vector<std::string_view>;

__attribute__((noinline)) static void read_packet(int number) {
  char* packet = new char[16 << 10]();
  std::snprintf(packet + 64, 16, "packet %d", number);
  kinds.push_back(std::string_view(packet + 64, 16));
}

int main() {
  kinds.reserve(1000);
  for (int number = 0; number < 1000; ++number) {
    read_packet(number);
    pace(number, 1000);
  }
  std::printf("%zu\n", kinds.size());
  return 0;
}
