// A report keeps rows that 128 functions make, each called by 64 others: no stack has a 4096th of
// the memory, and no function a tenth.
// build: c++
// finding: growth in build_report
#include <cstdio>
#include <utility>
#include <vector>

#include "pace.h"

static std::vector<char*> kept;

template <int N>
__attribute__((noinline)) int make_cell(int number) {
  char* block = new char[200];
  block[0] = static_cast<char>(number + N);
  kept.push_back(block);
  return block[0];
}

typedef int (*Cell)(int);

template <int... N>
static Cell cell_of(std::integer_sequence<int, N...>, int number) {
  static const Cell cells[] = {make_cell<N>...};
  return cells[number];
}

template <int M>
__attribute__((noinline)) int make_row(int number) {
  return cell_of(std::make_integer_sequence<int, 128>(), number)(number) + M;
}

template <int... M>
static Cell row_of(std::integer_sequence<int, M...>, int number) {
  static const Cell rows[] = {make_row<M>...};
  return rows[number];
}

__attribute__((noinline)) int build_report(int number) {
  int sum = 0;
  for (int row = 0; row < 64; ++row) {
    sum += row_of(std::make_integer_sequence<int, 64>(), row)((number * 37 + row * 13) % 128);
  }
  return sum;
}

int main() {
  kept.reserve(1 << 20);
  long sum = 0;
  for (int number = 0; number < 2400; ++number) {
    sum += build_report(number);
    pace(number, 2400);
  }
  std::printf("%ld\n", sum);
  return 0;
}
