// A registry of handlers that only grows, and is freed by a static's destructor at exit: no leak checker sees it.
// build: c++
// finding: growth in Registry::subscribe
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "pace.h"

struct Handler { std::string topic; std::unique_ptr<char[]> state; };

struct Registry {
  std::map<int, std::unique_ptr<Handler>> handlers;
  __attribute__((noinline)) void subscribe(int id) {
    auto handler = std::make_unique<Handler>();
    handler->topic = "a topic of some length, number " + std::to_string(id);
    handler->state = std::make_unique<char[]>(600);
    handlers[id] = std::move(handler);
  }
};

static Registry registry;

__attribute__((noinline)) size_t deliver(int id) {
  std::string message;
  for (int part = 0; part < 12; ++part) message += "part " + std::to_string(id + part) + " of the message;";
  return message.size();
}

int main() {
  size_t sum = 0;
  for (int id = 0; id < 8000; ++id) {
    sum += deliver(id);
    if (id % 2 == 0) registry.subscribe(id);
    pace(id, 8000);
  }
  std::printf("%zu\n", sum);
  return 0;
}
