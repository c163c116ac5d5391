// A cache of rendered pages without eviction, whose keys are never used again.
// build: c++
// finding: growth in PageCache::render
#include <cstdio>
#include <string>
#include <unordered_map>

#include "pace.h"

struct PageCache {
  std::unordered_map<std::string, std::string> pages;
  __attribute__((noinline)) const std::string& render(const std::string& url) {
    auto found = pages.find(url);
    if (found != pages.end()) return found->second;
    std::string page = "<html>" + url + std::string(1200, '.') + "</html>";
    return pages[url] = page;
  }
};

int main() {
  PageCache cache;
  size_t sum = 0;
  for (int request = 0; request < 6000; ++request) {
    // Every third request has an identifier of its own in its address.
    const int id = request % 3 == 0 ? request : request % 50;
    sum += cache.render("/a/page/of/the/shop?number=" + std::to_string(id)).size();
    pace(request, 6000);
  }
  std::printf("%zu\n", sum);
  return 0;
}
