// Coroutines that four threads continue in turns, each time another one: a block of one coroutine
// is freed by another.
// build: -pthread
// expect: frame=victim_takes allocs=4000 alloc_bytes=300000 outstanding=1000
// expect-unmatched: 0
#define _GNU_SOURCE
#include <pthread.h>
#include <ucontext.h>

#include "victim.h"

#define COROUTINES 40
#define ROUNDS 50
#define THREADS 4

static ucontext_t coroutines[COROUTINES], back[COROUTINES];
static char stacks[COROUTINES][64 << 10];
static int is_done[COROUTINES];
static pthread_barrier_t all;

VICTIM static void *victim_takes(size_t bytes) {
    void *block = malloc(bytes);
    MUST(block);
    return block;
}

static void work(int number) {
    for (int round = 0; round < ROUNDS; round++) {
        void *first = victim_takes(100);
        swapcontext(&coroutines[number], &back[number]);
        void *second = victim_takes(50);
        free(first);
        swapcontext(&coroutines[number], &back[number]);
        if (round % 2) free(second);
    }
    is_done[number] = 1;
}

static void *goes_on(void *argument) {
    long own = (long)argument;
    for (int round = 0; round < ROUNDS * 2 + THREADS; round++) {
        for (int number = 0; number < COROUTINES; number++)
            if ((number + round) % THREADS == own && !is_done[number])
                swapcontext(&back[number], &coroutines[number]);
        pthread_barrier_wait(&all);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&all, NULL, THREADS);
    for (int number = 0; number < COROUTINES; number++) {
        ucontext_t *made = &coroutines[number];
        getcontext(made);
        made->uc_stack.ss_sp = stacks[number];
        made->uc_stack.ss_size = sizeof stacks[number];
        made->uc_link = &back[number];
        makecontext(made, (void (*)(void))work, 1, number);
    }
    for (long number = 0; number < THREADS; number++) pthread_create(&threads[number], NULL, goes_on, (void *)number);
    for (int number = 0; number < THREADS; number++) pthread_join(threads[number], NULL);
    for (int number = 0; number < COROUTINES; number++) MUST(is_done[number]);
    puts("done");
    return 0;
}
