// A pool like SQLite's lookaside or Python's small objects: slots of one size from one block of
// malloc, a free list, and malloc when it is full. It is an example of heapr_heap.h: the pool's
// heap shows who holds slots, malloc's who made the pool.
// expect: frame=victim_open_pool allocs=1 alloc_bytes=65536 outstanding=0
// expect: frame=victim_parse allocs=600 alloc_bytes=60000 outstanding=0
// expect: frame=victim_remember allocs=200 alloc_bytes=20000 outstanding=0
// expect: frame=victim_overflow allocs=40 alloc_bytes=8000 outstanding=40 outstanding_bytes=8000
// expect-unmatched: 0
#include "victim.h"
#include "../crates/agent/include/heapr_heap.h"

enum { SLOT = 128, SLOTS = 512 };

struct pool {
    char *slots;
    void *free_list;
    heapr_heap_t heap;
};

VICTIM static void victim_open_pool(struct pool *pool) {
    pool->slots = malloc(SLOT * SLOTS);
    MUST(pool->slots != NULL);
    pool->free_list = NULL;
    for (int number = SLOTS - 1; number >= 0; number--) {
        void **slot = (void **)(pool->slots + number * SLOT);
        *slot = pool->free_list;
        pool->free_list = slot;
    }
    pool->heap = heapr_heap_new("lookaside");
}

// Returns a slot, or a block of malloc's if the size does not fit or no slot is left.
static void *take(struct pool *pool, size_t size) {
    void **slot = pool->free_list;
    if (size > SLOT || slot == NULL)
        return malloc(size);
    pool->free_list = *slot;
    heapr_heap_on_alloc(pool->heap, slot, size);
    return slot;
}

static void give(struct pool *pool, void *block) {
    if ((char *)block < pool->slots || (char *)block >= pool->slots + SLOT * SLOTS) {
        free(block);
        return;
    }
    // Reported before the slot is freed: its next allocation must come later.
    heapr_heap_on_free(pool->heap, block);
    *(void **)block = pool->free_list;
    pool->free_list = block;
}

static void close_pool(struct pool *pool) {
    heapr_heap_delete(pool->heap);
    free(pool->slots);
}

VICTIM static void victim_parse(struct pool *pool) {
    void *tokens[20];
    for (int number = 0; number < 20; number++)
        tokens[number] = take(pool, 100);
    for (int number = 0; number < 20; number++)
        give(pool, tokens[number]);
}
VICTIM static void victim_remember(struct pool *pool) { MUST(take(pool, 100) != NULL); }
VICTIM static void victim_overflow(struct pool *pool) { MUST(take(pool, 200) != NULL); }

int main(void) {
    struct pool pool;
    victim_open_pool(&pool);
    for (int statement = 0; statement < 30; statement++)
        victim_parse(&pool);
    // Never freed, but gone with the pool.
    for (int number = 0; number < 200; number++)
        victim_remember(&pool);
    // Too large for a slot: these blocks are malloc's, and outlive the pool.
    for (int number = 0; number < 40; number++)
        victim_overflow(&pool);
    close_pool(&pool);
    return 0;
}
