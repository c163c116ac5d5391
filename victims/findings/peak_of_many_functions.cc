// A document whose parts are made by many functions, each of them a little: the peak belongs to
// parse_document with all that it calls.
// build: c++
// finding: peak in parse_document, with what it calls
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "pace.h"

struct Node { std::string text; std::vector<std::unique_ptr<Node>> children; };
#define NODE(name) __attribute__((noinline)) static void name(Node& parent, int i) { \
  auto node = std::make_unique<Node>(); node->text = std::string(300 + i % 40, #name[0]); parent.children.push_back(std::move(node)); }
NODE(heading) NODE(paragraph) NODE(list_item) NODE(table_cell) NODE(image) NODE(footnote) NODE(quote) NODE(code_block)

__attribute__((noinline)) static std::unique_ptr<Node> parse_document(int size) {
  auto root = std::make_unique<Node>();
  void (*const kinds[])(Node&, int) = {heading, paragraph, list_item, table_cell, image, footnote, quote, code_block};
  for (int i = 0; i < size; ++i) { kinds[i % 8](*root, i); if (i % 400 == 0) pace(0, 1); }
  return root;
}

__attribute__((noinline)) static size_t small_request(int i) { std::vector<char> text(2000 + i % 9); return text.size(); }

int main() {
  std::vector<std::vector<char>> base;
  size_t sum = 0;
  for (int i = 0; i < 3000; ++i) {
    if (base.size() < 60) base.emplace_back(5000);
    sum += small_request(i);
    if (i == 1500) sum += parse_document(12000)->children.size();
    pace(i, 3000);
  }
  std::printf("%zu\n", sum);
  return 0;
}
