// A batch whose third step holds all its rows at once: a short peak, ten times what is live before and after.
// build: c++
// finding: peak in sort_all_rows
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "pace.h"

__attribute__((noinline)) size_t scan(int step) {
  std::vector<int> window(4000, step);
  return window.size();
}

__attribute__((noinline)) size_t sort_all_rows() {
  std::vector<std::string> rows;
  rows.reserve(20000);
  for (int row = 20000; row > 0; --row) rows.push_back("a row of the table with the number " + std::to_string(row));
  std::sort(rows.begin(), rows.end());
  return rows.size();
}

int main() {
  std::vector<char> index(200000);
  size_t sum = index.size();
  for (int step = 0; step < 1000; ++step) {
    sum += scan(step);
    if (step == 600) sum += sort_all_rows();
    pace(step, 1000);
  }
  std::printf("%zu\n", sum);
  return 0;
}
