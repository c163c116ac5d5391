// Pools of the program, announced through heapr_heap.h: their blocks count in heaps of their names,
// and are freed with a destroyed heap. A handle of a destroyed heap does nothing.
// build: -lpthread
// variant: -O1 -fno-pie -no-pie
// expect: frame=victim_session_take allocs=31 alloc_bytes=3100 outstanding=19 outstanding_bytes=1900
// expect: frame=victim_arena_take allocs=500 alloc_bytes=32000 outstanding=0
// expect: frame=victim_resize allocs=1 alloc_bytes=4000 outstanding=1 outstanding_bytes=4000
// expect: frame=victim_after_end allocs=0
// expect: frame=victim_thread_take allocs=400 alloc_bytes=6400 outstanding=400
// expect-unmatched: 0
#include "victim.h"
#include "../crates/agent/include/heapr_heap.h"
#include <pthread.h>
#include <stdint.h>

// Addresses that are never read or written: a pool only hands out numbers.
static char session_pool[1 << 16], arena_pool[1 << 16], thread_pool[1 << 16];

VICTIM static void victim_session_take(heapr_heap_t heap, int number) {
    heapr_heap_on_alloc(heap, session_pool + number * 128, 100);
}
VICTIM static void victim_arena_take(heapr_heap_t heap, int number) {
    heapr_heap_on_alloc(heap, arena_pool + number * 64, 64);
}
VICTIM static void victim_resize(heapr_heap_t heap) {
    heapr_heap_on_resize(heap, session_pool + 19 * 128, session_pool + 40000, 4000);
}
VICTIM static void victim_after_end(heapr_heap_t heap) { heapr_heap_on_alloc(heap, arena_pool, 64); }
VICTIM static void victim_thread_take(heapr_heap_t heap, int number) {
    heapr_heap_on_alloc(heap, thread_pool + number * 16, 16);
}
static heapr_heap_t shared;
static void *take_hundred(void *first) {
    for (int number = 0; number < 100; number++)
        victim_thread_take(shared, (int)(intptr_t)first + number);
    return NULL;
}

int main(void) {
    heapr_heap_t sessions = heapr_heap_new("session pool");
    for (int number = 0; number < 30; number++)
        victim_session_take(sessions, number);
    for (int number = 20; number < 30; number++)
        heapr_heap_on_free(sessions, session_pool + number * 128);
    victim_resize(sessions);
    victim_session_take(sessions, 19);
    heapr_heap_on_free(sessions, session_pool);
    // An arena for each request, all with one name and the same addresses.
    heapr_heap_t arena = NULL;
    for (int request = 0; request < 10; request++) {
        arena = heapr_heap_new("request arena");
        for (int number = 0; number < 50; number++)
            victim_arena_take(arena, number);
        heapr_heap_delete(arena);
    }
    victim_after_end(arena);
    heapr_heap_delete(arena);
    victim_after_end(NULL);
    shared = heapr_heap_new("a name of more than sixty-four bytes, of which the first sixty-four are kept");
    pthread_t threads[4];
    for (intptr_t number = 0; number < 4; number++)
        MUST(pthread_create(&threads[number], NULL, take_hundred, (void *)(number * 100)) == 0);
    for (int number = 0; number < 4; number++)
        MUST(pthread_join(threads[number], NULL) == 0);
    // More heaps than there are numbers: the rest get none, without any other effect.
    heapr_heap_t many[300];
    for (int number = 0; number < 300; number++)
        many[number] = heapr_heap_new("one of many");
    for (int number = 0; number < 300; number++)
        heapr_heap_delete(many[number]);
    return 0;
}
