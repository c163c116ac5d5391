// The program takes every key of thread-local values and gets them all. Their destructors run, and
// threads are still recorded.
// build: -pthread
// expect: frame=victim_worker allocs=40 alloc_bytes=4120 outstanding=0
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <threads.h>

#include "victim.h"

static pthread_key_t keys[PTHREAD_KEYS_MAX];
static int key_count;
static int ended;

static void destroy(void *value) {
    __atomic_fetch_add(&ended, 1, __ATOMIC_SEQ_CST);
    free(value);
}

VICTIM static void *victim_worker(void *unused) {
    void *block = malloc(103);
    MUST(pthread_setspecific(keys[key_count - 1], block) == 0);
    return unused;
}

static void *early(void *unused) {
    free(malloc(11));
    return unused;
}

int main(void) {
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, early, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    while (key_count < PTHREAD_KEYS_MAX && pthread_key_create(&keys[key_count], destroy) == 0)
        key_count++;
    pthread_key_t another;
    MUST(pthread_key_create(&another, destroy) == EAGAIN);
    tss_t one;
    MUST(tss_create(&one, destroy) == thrd_error);
    for (int i = 0; i < key_count; i++)
        MUST(pthread_getspecific(keys[i]) == NULL);
    for (int i = 0; i < 40; i++) {
        MUST(pthread_create(&thread, NULL, victim_worker, NULL) == 0);
        MUST(pthread_join(thread, NULL) == 0);
    }
    MUST(ended == 40);
    // The number is that of a run without heapr: the test compares both outputs.
    printf("%d keys\n", key_count);
    return 0;
}
