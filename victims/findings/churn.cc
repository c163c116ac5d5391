// A parser that makes and drops a buffer of the same size for each token: nearly all allocations are temporary.
// build: c++
// finding: churn in Tokenizer::next
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "pace.h"

struct Tokenizer {
  __attribute__((noinline)) size_t next(int token) {
    auto scratch = std::make_unique<char[]>(512);
    scratch[token % 512] = 'x';
    return scratch[0] + 1;
  }
};

int main() {
  Tokenizer tokenizer;
  std::vector<std::string> kept;
  size_t sum = 0;
  for (int token = 0; token < 300000; ++token) {
    sum += tokenizer.next(token);
    if (token % 3000 == 0 && kept.size() < 20) kept.push_back("a statement that is kept for its whole life");
    pace(token, 300000);
  }
  std::printf("%zu\n", sum + kept.size());
  return 0;
}
