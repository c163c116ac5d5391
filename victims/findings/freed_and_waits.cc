// Reads a batch, frees it at once, and waits for the next one without any allocation.
// build: c++
// finding: none
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "pace.h"

struct Row { char text[400]; };

__attribute__((noinline)) size_t read_batch() {
  std::vector<std::unique_ptr<Row>> rows;
  for (int row = 0; row < 9000; ++row) {
    rows.push_back(std::make_unique<Row>());
    rows.back()->text[row % 400] = 1;
    pace(row, 9000);
  }
  return rows.size();
}

int main() {
  size_t sum = read_batch();
  // No event marks the end of the wait, nor the end of the program.
  for (int pause = 0; pause < 300; ++pause) pace(0, 1);
  std::printf("%zu\n", sum);
  std::fflush(stdout);
  _Exit(0);
}
