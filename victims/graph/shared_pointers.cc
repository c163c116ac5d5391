// Objects with reference counts: in an unreachable circle, and in a reachable one.
// leaks: frame=circle_lost kind=definite count=1
// leaks: frame=circle_partner kind=indirect count=1
// leaks: frame=circle_kept kind=reachable count=2
#include "graph.h"
#include <memory>
struct Node { std::shared_ptr<Node> next; char text[40]; };
static std::shared_ptr<Node> kept;
APART Node *circle_lost() { return new Node(); }
APART Node *circle_partner() { return new Node(); }
APART Node *circle_kept() { return new Node(); }
APART void own(std::shared_ptr<Node> &where, Node *node) { where.reset(node); }
APART void join(std::shared_ptr<Node> &one, std::shared_ptr<Node> &other) {
  one->next = other;
  other->next = one;
}
static APART void build() {
  // The older object of a circle stands for the circle.
  std::shared_ptr<Node> one, other;
  own(one, circle_lost());
  own(other, circle_partner());
  join(one, other);
  std::shared_ptr<Node> partner;
  own(kept, circle_kept());
  own(partner, circle_kept());
  join(kept, partner);
}
int main() {
  far_below(build);
  wait_to_be_seen();
}
