// A thread that is interrupted all the time while it calls from ever new stacks. Each handler runs
// on the thread's own stack, as garbage collectors require that stop threads by signals and scan
// their stacks from there.
// build: -pthread
// expect: frame=victim_allocates allocs=100000 outstanding=0
#include <pthread.h>

#include "victim.h"

enum { CALLS = 100000, DEPTH = 6, STACK = 131072 };

static uintptr_t low, high;
static volatile long seen, elsewhere;
static volatile int is_ready, is_done;

static void handler(int number) {
    uintptr_t here = (uintptr_t)&number;
    if (here >= low && here < high)
        seen++;
    else
        elsewhere++;
}

VICTIM static void victim_allocates(unsigned kind) {
    void *volatile block = malloc(kind % 300 + 1);
    free(block);
}

#define FUNCTIONS(each) each(0) each(1) each(2) each(3) each(4) each(5) each(6) each(7)
#define DECLARED(n) static void shape##n(unsigned kind, int depth);
FUNCTIONS(DECLARED)
#define LISTED(n) shape##n,
static void (*const shapes[])(unsigned, int) = {FUNCTIONS(LISTED)};
#define DEFINED(n)                                                                                                     \
    VICTIM static void shape##n(unsigned kind, int depth) {                                                            \
        if (depth == 0)                                                                                                \
            victim_allocates(kind);                                                                                    \
        else                                                                                                           \
            shapes[kind & 7](kind >> 3 | kind << 29, depth - 1);                                                       \
        __asm__ volatile("");                                                                                          \
    }
FUNCTIONS(DEFINED)

static void *thread(void *unused) {
    pthread_attr_t attributes;
    void *start;
    size_t size;
    MUST(pthread_getattr_np(pthread_self(), &attributes) == 0 && pthread_attr_getstack(&attributes, &start, &size) == 0);
    low = (uintptr_t)start;
    high = low + size;
    is_ready = 1;
    for (unsigned call = 0; call < CALLS; call++)
        shape0(call * 2654435761u, DEPTH);
    is_done = 1;
    return unused;
}

int main(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    pthread_attr_t attributes;
    pthread_t id;
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_attr_init(&attributes);
    MUST(pthread_attr_setstacksize(&attributes, STACK) == 0 && pthread_create(&id, &attributes, thread, NULL) == 0);
    while (!is_ready)
        ;
    do
        MUST(pthread_kill(id, SIGUSR1) == 0);
    while (!is_done);
    pthread_join(id, NULL);
    MUST(seen > 0 && elsewhere == 0);
    puts("done");
    return 0;
}
