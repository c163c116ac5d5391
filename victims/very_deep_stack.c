// Recursion to a depth of 300,000: the outermost frame is in the stack.
// build: -pthread
// verify: 0
// expect: frame=victim_thread allocs=10 alloc_bytes=2110
#include <pthread.h>

#include "victim.h"

VICTIM static void victim_bottom(void) {
    for (int i = 0; i < 10; i++)
        MUST(malloc(211) != NULL);
}
VICTIM static int victim_descend(int depth) {
    if (depth == 0) {
        victim_bottom();
        return 0;
    }
    return victim_descend(depth - 1) + 1;
}
VICTIM static void *victim_thread(void *nothing) {
    MUST(victim_descend(300000) == 300000);
    return nothing;
}

int main(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    MUST(pthread_attr_init(&attributes) == 0);
    MUST(pthread_attr_setstacksize(&attributes, 64 << 20) == 0);
    MUST(pthread_create(&thread, &attributes, victim_thread, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    puts("done");
    return 0;
}
