// 2,001 allocations by main and two threads, of which 1,000 stay, beside what the C library makes.
#include <pthread.h>
#include <stdlib.h>

static void *kept[1000];

__attribute__((noinline)) static void *leave(size_t bytes) { return malloc(bytes); }
__attribute__((noinline)) static void pass(size_t bytes) { free(malloc(bytes)); }

static void *work(void *argument) {
    long begin = (long)argument;
    for (long number = begin; number < begin + 500; number++) {
        kept[number] = leave(77);
        pass(33);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (long number = 0; number < 2; number++) pthread_create(&threads[number], NULL, work, (void *)(500 * number));
    for (int number = 0; number < 2; number++) pthread_join(threads[number], NULL);
    pass(44);
    return 0;
}
