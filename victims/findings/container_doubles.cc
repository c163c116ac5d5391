// An index that gets an element for each request and loses none: its one block is replaced by one of twice the size,
// ever more seldom.
// build: c++
// finding: growth in Index::add
#include <cstdio>
#include <vector>

#include "pace.h"

struct Index {
  std::vector<long> rows;
  __attribute__((noinline)) void add(int id) { rows.push_back(id); }
};

__attribute__((noinline)) size_t handle(int id) {
  std::vector<char> answer(200 + id % 7);
  return answer.size();
}

int main() {
  auto* index = new Index;
  size_t sum = 0;
  for (int id = 0; id < 60000; ++id) {
    sum += handle(id);
    for (int row = 0; row < 4; ++row) index->add(id + row);
    pace(id, 60000);
  }
  std::printf("%zu\n", sum + index->rows.size());
  return 0;
}
