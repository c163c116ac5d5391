// heapr uses at most 1 KiB of the program's stack: on a thread's, on a signal handler's own, on a
// fiber's in the heap. Each call is made for the first time and once more. The stack below is
// painted before the call and checked after it. The C library's own use lies in the same place, is
// less, and does not add to it.
// (Not verified: a full unwind begins on the program's stack.)
// build: -pthread -Wl,-z,now
// verify: 0
// expect: frame=victim_takes allocs=720 outstanding=0
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "victim.h"

// The frames between the paint and the hook's caller use less than 128 bytes of it.
enum { PAINTED = 6000, NEAR = 64, LIMIT = 1024 + 128, STACK = 16384 };

static void *block, *other;

VICTIM static void victim_takes(int kind) {
    switch (kind) {
    case 0: block = malloc(100); break;
    case 1: block = calloc(10, 20); break;
    case 2: block = malloc(300000); break;
    case 3: block = aligned_alloc(64, 640); break;
    case 4: block = posix_memalign(&other, 64, 100) == 0 ? other : NULL; break;
    default: block = realloc(NULL, 2000);
    }
}
VICTIM static void victim_gives(int kind) { free(kind % 2 ? realloc(block, 5000) : block); }

VICTIM static long depth_of(void (*call)(int), int kind) {
    unsigned char *from = (unsigned char *)__builtin_frame_address(0) - 512;
    for (volatile unsigned char *at = from; at > from - PAINTED; at--)
        *at = 0xa5;
    unsigned char *sp;
    __asm__ volatile("mov %%rsp, %0" : "=r"(sp));
    for (volatile unsigned char *at = sp - NEAR; at > from; at--)
        *at = 0xa5;
    call(kind);
    for (unsigned char *at = from - PAINTED + 1; at < sp - NEAR; at++)
        if (*(volatile unsigned char *)at != 0xa5)
            return sp - at;
    return 0;
}
VICTIM static void deeper(int levels, int kind) {
    if (levels > 0)
        deeper(levels - 1, kind);
    else {
        long taken = depth_of(victim_takes, kind), given = depth_of(victim_gives, kind);
        if (taken > LIMIT || given > LIMIT) {
            fprintf(stderr, "call %d: %ld and %ld bytes of the stack\n", kind, taken, given);
            _exit(99);
        }
    }
    __asm__ volatile("");
}
// Calls from stacks of 20 shapes, each twice.
static void all(void) {
    for (int kind = 0; kind < 6; kind++)
        for (int levels = 0; levels < 40; levels++)
            deeper(levels / 2, kind);
}
static void *thread(void *unused) {
    all();
    return unused;
}
static void handler(int number) {
    (void)number;
    all();
}

int main(void) {
    pthread_attr_t attributes;
    pthread_t id;
    pthread_attr_init(&attributes);
    MUST(pthread_attr_setstacksize(&attributes, STACK) == 0);
    MUST(pthread_create(&id, &attributes, thread, NULL) == 0);
    pthread_join(id, NULL);
    stack_t stack = {.ss_size = STACK};
    stack.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(stack.ss_sp != MAP_FAILED && sigaltstack(&stack, NULL) == 0);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0 && raise(SIGUSR1) == 0);
    static ucontext_t here, fiber;
    void *memory = malloc(STACK);
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = memory;
    fiber.uc_stack.ss_size = STACK;
    fiber.uc_link = &here;
    makecontext(&fiber, all, 0);
    MUST(swapcontext(&here, &fiber) == 0);
    free(memory);
    puts("done");
    return 0;
}
