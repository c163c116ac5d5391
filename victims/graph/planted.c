// Structures of every common shape, of as many blocks as it is told (COUNT, default 100,000), which
// print their own references and what some of their blocks retain:
//   block ADDRESS BYTES; edge FROM WORD TO; retains ADDRESS BYTES
// The first line names the process, the last line is `ready`. (No leaks.)
// planted
#include "graph.h"
static uint64_t seed = 88172645463325252u;
static uint64_t next_random(void) { seed ^= seed << 13; seed ^= seed >> 7; return seed ^= seed << 17; }
static FILE *out;
static void *made(size_t size) {
  void *block = calloc(1, size);
  fprintf(out, "block %lx %zu\n", (long)block, size);
  return block;
}
static void edge(void *from, void *place, void *to) {
  fprintf(out, "edge %lx %zu %lx\n", (long)from, ((char *)place - (char *)from) / 8, (long)to);
}
#define LINK(from, member, to) do { (from)->member = (to); edge(from, &(from)->member, to); } while (0)
static void retains(void *block, size_t bytes) { fprintf(out, "retains %lx %zu\n", (long)block, bytes); }

// List: each item retains all items behind it.
struct item { struct item *next; long value[3]; };
static struct item *volatile list;
static APART void make_list(long count) {
  struct item *last = list = made(sizeof *list);
  retains(list, count * sizeof *list);
  for (long number = 1; number < count; number++) {
    struct item *item = made(sizeof *item);
    LINK(last, next, item);
    last = item;
    if (number % (count / 10 + 1) == 0) retains(item, (count - number) * sizeof *item);
  }
}
// Search tree: each leaf retains its subtree.
struct leaf { long key; struct leaf *left, *right; };
static struct leaf *tree;
static long subtree(struct leaf *leaf, int depth) {
  long count = 1;
  if (leaf->left) { edge(leaf, &leaf->left, leaf->left); count += subtree(leaf->left, depth + 1); }
  if (leaf->right) { edge(leaf, &leaf->right, leaf->right); count += subtree(leaf->right, depth + 1); }
  if (depth < 5) retains(leaf, count * sizeof *leaf);
  return count;
}
static APART void make_tree(long count) {
  for (long number = 0; number < count; number++) {
    struct leaf *leaf = made(sizeof *leaf), **place = &tree;
    leaf->key = next_random() & 0xffffff;
    while (*place) place = leaf->key < (*place)->key ? &(*place)->left : &(*place)->right;
    *place = leaf;
  }
  subtree(tree, 0);
}
// Hash table: the first entry of a bucket retains its chain, the table retains everything.
struct entry { long key; struct entry *next; long value[2]; };
struct table { struct entry **buckets; long bucket_count; };
static struct table *volatile table;
static APART void make_hash(long count) {
  long bucket_count = count / 4 + 1;
  table = made(sizeof *table);
  struct entry **buckets = made(bucket_count * sizeof *buckets);
  LINK(table, buckets, buckets);
  table->bucket_count = bucket_count;
  long *lengths = calloc(bucket_count, sizeof *lengths);
  for (long number = 0; number < count; number++) {
    struct entry *entry = made(sizeof *entry);
    entry->key = next_random() & 0xffffff;
    long bucket = entry->key % bucket_count;
    entry->next = buckets[bucket];
    buckets[bucket] = entry;
    if (entry->next) edge(entry, &entry->next, entry->next);
    lengths[bucket]++;
  }
  for (long bucket = 0; bucket < bucket_count; bucket++) {
    if (!buckets[bucket]) continue;
    edge(buckets, &buckets[bucket], buckets[bucket]);
    if (bucket < 20) retains(buckets[bucket], lengths[bucket] * sizeof(struct entry));
  }
  free(lengths);
  retains(table, sizeof *table + bucket_count * sizeof *buckets + count * sizeof(struct entry));
}
// Chain of diamonds: both sides lead to the next top, so neither retains more than itself.
struct corner { struct corner *left, *right; long value; };
static struct corner *volatile diamonds;
static APART void make_diamonds(long count) {
  struct corner *top = diamonds = made(sizeof *top);
  for (long number = 0; number < count / 3; number++) {
    struct corner *left = made(sizeof *left), *right = made(sizeof *right), *next = made(sizeof *next);
    LINK(top, left, left);
    LINK(top, right, right);
    LINK(left, left, next);
    LINK(right, right, next);
    if (number % (count / 30 + 1) == 0) {
      retains(top, ((count / 3 - number) * 3 + 1) * sizeof *top);
      retains(left, sizeof *left);
    }
    top = next;
  }
}
// Circles of ten with a short cut, entered at one link, all held by one array.
struct link { struct link *next, *across; };
static struct link **volatile circles;
static APART void make_circles(long count) {
  long circle_count = count / 10;
  circles = made(circle_count * sizeof *circles);
  for (long number = 0; number < circle_count; number++) {
    struct link *links[10];
    for (int place = 0; place < 10; place++) links[place] = made(sizeof **links);
    for (int place = 0; place < 10; place++) LINK(links[place], next, links[(place + 1) % 10]);
    LINK(links[0], across, links[5]);
    circles[number] = links[0];
    edge(circles, &circles[number], links[0]);
    if (number < 20) {
      retains(links[0], 10 * sizeof **links);
      retains(links[1], 4 * sizeof **links);
      retains(links[5], 5 * sizeof **links);
    }
  }
}
int main(int argc, char **argv) {
  long count = argc > 1 ? atol(argv[1]) : 100000;
  out = fopen(argc > 2 ? argv[2] : "/dev/stdout", "w");
  static char buffer[1 << 16];
  setvbuf(out, buffer, _IOFBF, sizeof buffer);
  fprintf(out, "process %d\n", getpid());
  make_list(count / 5);
  make_tree(count / 5);
  make_hash(count / 5);
  make_diamonds(count / 5);
  make_circles(count / 5);
  fflush(out);
  wait_to_be_seen();
}
