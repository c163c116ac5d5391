// A server with a cache of bounded size: nothing grows, nothing stands out.
// build: c++
// finding: none
#include <cstdio>
#include <list>
#include <string>
#include <unordered_map>

#include "pace.h"

struct BoundedCache {
  std::list<std::pair<int, std::string>> order;
  std::unordered_map<int, std::list<std::pair<int, std::string>>::iterator> places;
  __attribute__((noinline)) const std::string& get(int key) {
    auto found = places.find(key);
    if (found != places.end()) {
      order.splice(order.begin(), order, found->second);
      return order.front().second;
    }
    order.emplace_front(key, "a value of the key " + std::to_string(key) + std::string(300, '.'));
    places[key] = order.begin();
    if (order.size() > 200) {
      places.erase(order.back().first);
      order.pop_back();
    }
    return order.front().second;
  }
};

int main() {
  BoundedCache cache;
  size_t sum = 0;
  for (int request = 0; request < 9000; ++request) {
    sum += cache.get((request * 7919) % 1500).size();
    pace(request, 9000);
  }
  std::printf("%zu\n", sum);
  return 0;
}
