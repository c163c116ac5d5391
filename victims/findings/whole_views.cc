// Of some packets nearly all is viewed, and to the others a plain pointer leads, beside a view of 16 bytes.
// build: c++
// options: --graph-at-exit
// finding: growth in read_packet
// untold: slices
#include <cstdio>
#include <string_view>
#include <vector>

#include "pace.h"

static std::vector<std::string_view>& views = *new std::vector<std::string_view>;
static std::vector<char*>& packets = *new std::vector<char*>;

__attribute__((noinline)) static void read_packet(int number) {
  const size_t size = 16 << 10;
  char* packet = new char[size]();
  std::snprintf(packet + 64, 16, "packet %d", number);
  if (number % 2) {
    views.push_back(std::string_view(packet + 64, size - 64));
  } else {
    views.push_back(std::string_view(packet + 64, 16));
    packets.push_back(packet);
  }
}

int main() {
  views.reserve(1000);
  packets.reserve(1000);
  for (int number = 0; number < 1000; ++number) {
    read_packet(number);
    pace(number, 1000);
  }
  std::printf("%zu %zu\n", views.size(), packets.size());
  return 0;
}
