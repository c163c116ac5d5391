// Blocks of every common kind of container, and objects that identify their class; each is held.
// leaks: frame=forgotten_object kind=definite count=1 type=Named
// types: Named
// types: elements of vector<Element> (by its allocation)
// types: node of map or set<std::pair<int const, Element>> (by its allocation)
// types: node of list<Element> (by its allocation)
// types: std::_Sp_counted_ptr_inplace<Element,
// types: text of string (by its allocation)
#include "graph.h"
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
struct Element { long value[3]; };
struct Named { virtual ~Named() {} long value[5]; };
static std::vector<Element> elements;
static std::map<int, Element> ordered;
static std::unordered_map<int, Element> hashed;
static std::list<Element> linked;
static std::deque<Element> queue;
static std::shared_ptr<Element> shared;
static std::string text;
static Named *named;
#define SEEN(object) __asm__ volatile("" : : "r"(object) : "memory")
APART void forgotten_object() { SEEN(new Named); }
static APART void build() {
  for (int number = 0; number < 50; number++) {
    elements.push_back({});
    ordered[number] = {};
    hashed[number] = {};
    linked.push_back({});
    queue.push_back({});
  }
  shared = std::make_shared<Element>();
  text = std::string(200, 'x');
  named = new Named;
  SEEN(&named);
  SEEN(&text);
  forgotten_object();
}
int main() {
  build();
  wait_to_be_seen();
}
