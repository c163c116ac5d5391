// Makes memory of each kind, a known amount of each, and waits for a line on its input. It prints
// "KIND BYTES" for each, and "ready".
// build: -pthread

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, STACK_TOUCHED = 256 << 10, MIB = 1 << 20 };

static pthread_barrier_t touched;
static char *held[THREADS][1000];
static char zeroed[2 * MIB];
static char written[MIB] = {1};

static void *worker(void *number) {
    volatile char room[STACK_TOUCHED];
    for (size_t at = 0; at < sizeof room; at += 4096) room[at] = 1;
    // In this thread's own arena.
    for (int at = 0; at < 1000; at++) {
        held[(long)number][at] = malloc(1000);
        memset(held[(long)number][at], 1, 1000);
    }
    pthread_barrier_wait(&touched);
    pause();
    return (void *)(long)room[0];
}

static char *mapped(size_t bytes, int flags, int file) {
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    if (memory == MAP_FAILED) exit(99);
    return memory;
}

// Maps memory between two inaccessible pages, because the kernel merges neighbouring mappings.
static char *apart(size_t bytes) {
    char *memory = mapped(bytes + 2 * 4096, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    mprotect(memory, 4096, PROT_NONE);
    mprotect(memory + 4096 + bytes, 4096, PROT_NONE);
    return memory + 4096;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_barrier_init(&touched, NULL, THREADS + 1);
    pthread_t threads[THREADS];
    for (long number = 0; number < THREADS; number++) pthread_create(&threads[number], NULL, worker, (void *)number);
    pthread_barrier_wait(&touched);
    printf("thread_stacks %d\n", THREADS * STACK_TOUCHED);

    int file = memfd_create("kinds", 0);
    ftruncate(file, 3 * MIB);
    char *memory = mapped(3 * MIB, MAP_SHARED, file);
    memset(memory, 1, 3 * MIB);
    printf("shared_memory %d\n", 3 * MIB);

    // A mapping of the program itself, which belongs to no allocator. Half of it is freed lazily.
    char *own = apart(4 * MIB);
    memset(own, 1, 4 * MIB);
    if (madvise(own, 2 * MIB, MADV_FREE) == 0) printf("lazily_freed %d\n", 2 * MIB);
    madvise(own + 3 * MIB, 64 << 10, MADV_DONTFORK);
    if (mlock(own + 3 * MIB, 64 << 10) == 0) printf("locked %d\n", 64 << 10);

    char *huge = apart(8 * MIB);
    madvise(huge, 8 * MIB, MADV_HUGEPAGE);
    memset(huge, 1, 8 * MIB);
    printf("unknown %d\n", 12 * MIB);

    memset(zeroed, 1, sizeof zeroed);
    memset(written, 2, sizeof written);
    printf("written_data %zu\n", sizeof zeroed + sizeof written);

    char *by_brk = sbrk(MIB);
    memset(by_brk, 1, MIB);
    for (int at = 0; at < 20; at++) memset(malloc(200000), 1, 200000);
    printf("glibc_heap %d\n", MIB + THREADS * 1000 * 1000 + 20 * 200000);

    // Pages that a child has not written yet are shared with it.
    int lives[2];
    pipe(lives);
    if (fork() == 0) {
        close(lives[1]);
        char byte;
        read(lives[0], &byte, 1);
        _exit(0);
    }
    close(lives[0]);
    memset(own + 2 * MIB, 2, 512 << 10);
    puts("ready");
    char line[16];
    read(0, line, sizeof line);
    return 0;
}
