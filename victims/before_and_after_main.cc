// Allocation in constructors, static initialisation, thread-local and pthread-key destructors, atexit handlers and destructors.
// build: -pthread
// expect: frame=victim_early_constructor allocs=1 alloc_bytes=101 outstanding=1
// expect: frame=victim_static_initialiser allocs=1 alloc_bytes=102 outstanding=0
// expect: frame=victim_static_destructor allocs=1 alloc_bytes=103 outstanding=1
// expect: frame=victim_thread_local_destructor allocs=21 alloc_bytes=2184 outstanding=21
// expect: frame=victim_key_destructor allocs=20 alloc_bytes=2100 outstanding=20
// expect: frame=victim_atexit allocs=1 alloc_bytes=106 outstanding=1
// expect: frame=victim_late_destructor allocs=1 alloc_bytes=107 outstanding=1
#include <pthread.h>

#include "victim.h"

#define ALLOCATE(size) ({ void *block = malloc(size); MUST(block != NULL); block; })

__attribute__((constructor(101))) VICTIM static void victim_early_constructor() { ALLOCATE(101); }
__attribute__((destructor(101))) VICTIM static void victim_late_destructor() { ALLOCATE(107); }

VICTIM static void *victim_static_initialiser() { return ALLOCATE(102); }
VICTIM static void victim_static_destructor() { ALLOCATE(103); }
struct Static {
    void *block = victim_static_initialiser();
    ~Static() {
        free(block);
        victim_static_destructor();
    }
};
static Static the_static;

VICTIM static void victim_thread_local_destructor() { ALLOCATE(104); }
struct Local {
    int value = 0;
    ~Local() { victim_thread_local_destructor(); }
};
static thread_local Local the_local;

VICTIM static void victim_key_destructor(void *value) {
    MUST(value != nullptr);
    ALLOCATE(105);
}
VICTIM static void victim_atexit() { ALLOCATE(106); }

static pthread_key_t key;
static void *body(void *) {
    the_local.value = 1;
    pthread_setspecific(key, &key);
    return nullptr;
}

int main() {
    MUST(pthread_key_create(&key, victim_key_destructor) == 0);
    atexit(victim_atexit);
    the_local.value = 1;
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        MUST(pthread_create(&thread, nullptr, body, nullptr) == 0);
        pthread_join(thread, nullptr);
    }
    puts("done");
}
