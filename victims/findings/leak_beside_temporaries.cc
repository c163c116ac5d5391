// Each call leaks one block of a report, beside temporaries that are a thousand times as large: what the function
// holds goes up and down, and only what stays grows.
// build: c++
// finding: growth in export_report
#include <cstdio>
#include <cstdlib>

#include "pace.h"

static char* volatile last_header;

__attribute__((noinline)) size_t export_report(int number) {
  size_t sum = 0;
  char* header = static_cast<char*>(std::malloc(16000));
  header[0] = static_cast<char>(number);
  last_header = header;
  for (int part = 0; part < 4; ++part) {
    size_t bytes = 3000000 + (number * 7919123L + part * 1047290L) % 13000000;
    char* rows = static_cast<char*>(std::malloc(bytes));
    rows[bytes / 2] = 1;
    sum += rows[bytes / 2];
    pace(number * 4 + part, 1200);
    std::free(rows);
  }
  return sum + header[0];
}

int main() {
  size_t sum = 0;
  for (int number = 0; number < 300; ++number) sum += export_report(number);
  std::printf("%zu\n", sum);
  return 0;
}
