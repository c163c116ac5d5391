// A table of chains: removed entries are leaked with their values; a second table is leaked as a
// whole.
// leaks: frame=value_of kind=indirect count=25
// leaks: frame=entry_lost kind=definite count=25
// leaks: frame=entry_kept kind=reachable count=200
// leaks: frame=table_lost kind=definite count=1 bytes=512
// leaks: frame=entry_of_lost kind=indirect count=100
#include "graph.h"
struct entry { struct entry *next; void *value; unsigned key; };
static struct entry **volatile kept;
APART struct entry *entry_kept(void) { return calloc(1, sizeof(struct entry)); }
APART struct entry *entry_lost(void) { return calloc(1, sizeof(struct entry)); }
APART struct entry *entry_of_lost(void) { return calloc(1, sizeof(struct entry)); }
APART void *value_of(void) { return malloc(88); }
APART struct entry **table_kept(void) { return calloc(64, sizeof(struct entry *)); }
APART struct entry **table_lost(void) { return calloc(64, sizeof(struct entry *)); }
APART void put(struct entry **table, struct entry *entry, unsigned key) {
  entry->key = key;
  entry->next = table[key % 64];
  table[key % 64] = entry;
}
APART void drop(struct entry **table, unsigned key) {
  struct entry **place = &table[key % 64];
  while ((*place)->key != key) place = &(*place)->next;
  struct entry *entry = *place;
  *place = entry->next;
  entry->next = 0;
}
static APART void build(void) {
  struct entry **table = table_kept();
  kept = table;
  for (unsigned key = 0; key < 200; key++) put(table, entry_kept(), key);
  for (unsigned key = 1000; key < 1025; key++) {
    struct entry *entry = entry_lost();
    entry->value = value_of();
    put(table, entry, key);
  }
  for (unsigned key = 1000; key < 1025; key++) drop(table, key);
  table = table_lost();
  for (unsigned key = 0; key < 100; key++) put(table, entry_of_lost(), key);
}
int main(void) {
  build();
  wait_to_be_seen();
}
