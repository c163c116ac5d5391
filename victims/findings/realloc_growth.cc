// A log line that is grown by realloc, one byte at a time.
// build: c++
// finding: churn in LogLine::append
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "pace.h"

struct LogLine {
  char* text = nullptr;
  size_t length = 0;
  __attribute__((noinline)) void append(char one) {
    text = static_cast<char*>(std::realloc(text, length + 1));
    text[length++] = one;
  }
  ~LogLine() { std::free(text); }
};

int main() {
  size_t sum = 0;
  for (int line = 0; line < 400; ++line) {
    LogLine log;
    for (int at = 0; at < 300; ++at) log.append('a' + at % 26);
    sum += log.length;
    pace(line, 400);
  }
  std::printf("%zu\n", sum);
  return 0;
}
