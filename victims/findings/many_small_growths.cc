// A page is made by forty functions, and each of them keeps a little for ever: none has much by itself.
// build: c++
// finding: growth in serve_page
#include <cstdio>
#include <utility>
#include <vector>

#include "pace.h"

static std::vector<char*>* parts = new std::vector<char*>;

template <int N> struct Part {
  __attribute__((noinline)) static size_t make(int page) {
    char* text = new char[40 + N * 3];
    text[0] = static_cast<char>(page);
    parts->push_back(text);
    return sizeof(text);
  }
};

template <int... N> __attribute__((noinline)) size_t serve_page(int page, std::integer_sequence<int, N...>) {
  return (Part<N>::make(page) + ...);
}

int main() {
  parts->reserve(40 * 2000);
  size_t sum = 0;
  for (int page = 0; page < 2000; ++page) {
    sum += serve_page(page, std::make_integer_sequence<int, 40>());
    pace(page, 2000);
  }
  std::printf("%zu\n", sum);
  return 0;
}
