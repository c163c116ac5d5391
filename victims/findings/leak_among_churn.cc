// A server that forgets to close one session in four, among requests that free all they allocate.
// build: c++
// finding: growth in SessionTable::open
#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

#include "pace.h"

struct Session { std::string user; std::vector<char> buffer; };

struct SessionTable {
  std::unordered_map<int, Session*> open_sessions;
  __attribute__((noinline)) void open(int id) {
    auto* session = new Session;
    session->user = "the user with the number " + std::to_string(id);
    session->buffer.resize(900);
    open_sessions[id] = session;
  }
  __attribute__((noinline)) void close(int id) {
    auto found = open_sessions.find(id);
    delete found->second;
    open_sessions.erase(found);
  }
};

static SessionTable table;

__attribute__((noinline)) size_t parse(int id) {
  std::vector<std::string> words;
  for (int word = 0; word < 20; ++word) words.push_back("a word of the request " + std::to_string(id * word));
  return words.size();
}

int main() {
  size_t words = 0;
  for (int id = 0; id < 12000; ++id) {
    words += parse(id);
    table.open(id);
    if (id % 4 != 0) table.close(id);
    pace(id, 12000);
  }
  std::printf("%zu\n", words);
  // The table's destructor does not free the sessions.
  return 0;
}
