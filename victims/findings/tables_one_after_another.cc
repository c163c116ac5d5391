// An importer that fills one table after the other: no single function grows all the time, but the
// importer with all that it calls does.
// build: c++
// finding: growth in Importer::import, with what it calls
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "pace.h"

struct Importer {
  std::map<int, std::string> users, orders, items, prices, stocks;
  __attribute__((noinline)) void add_user(int id) { users[id] = std::string(150, 'u'); }
  __attribute__((noinline)) void add_order(int id) { orders[id] = std::string(170, 'o'); }
  __attribute__((noinline)) void add_item(int id) { items[id] = std::string(140, 'i'); }
  __attribute__((noinline)) void add_price(int id) { prices[id] = std::string(160, 'p'); }
  __attribute__((noinline)) void add_stock(int id) { stocks[id] = std::string(155, 's'); }
  __attribute__((noinline)) void import(int phase, int id) {
    switch (phase) {
      case 0: return add_user(id);
      case 1: return add_order(id);
      case 2: return add_item(id);
      case 3: return add_price(id);
      default: return add_stock(id);
    }
  }
};

int main() {
  auto* importer = new Importer;
  size_t sum = 0;
  for (int row = 0; row < 10000; ++row) {
    std::vector<char> line(400 + row % 5);
    importer->import(row / 2000, row);
    sum += line.size();
    pace(row, 10000);
  }
  std::printf("%zu\n", sum);
  return 0;
}
