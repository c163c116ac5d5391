// Reports that need much memory of very different sizes, and free all of it: nothing stays.
// build: c++
// finding: none
#include <cstdio>
#include <cstdlib>

#include "pace.h"

__attribute__((noinline)) size_t export_report(int number) {
  size_t sum = 0;
  for (int part = 0; part < 4; ++part) {
    size_t bytes = 3000000 + (number * 7919123L + part * 1047290L) % 13000000;
    char* rows = static_cast<char*>(std::malloc(bytes));
    rows[bytes / 2] = 1;
    sum += rows[bytes / 2];
    pace(number * 4 + part, 1200);
    std::free(rows);
  }
  return sum;
}

int main() {
  size_t sum = 0;
  for (int number = 0; number < 300; ++number) sum += export_report(number);
  std::printf("%zu\n", sum);
  return 0;
}
