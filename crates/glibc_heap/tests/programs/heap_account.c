// Holds a heap of the wanted shape, keeps its own account of every live and every freed block, writes it and waits.
// Usage: heap_account SHAPE ACCOUNT-FILE SEED BLOCKS THREADS.
//
// The account is binary: records of three 64-bit words: 1, address, usable size for a live block; 2, address, 0 for a
// freed one; 3, value, index for mallinfo2's totals; 4, fs base, 0 for each thread. The account's own memory comes
// from mmap, so that it is not in the heap that it describes. When the file is complete a line "ready" is written.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS_MOST 128
#define RECORDS_MOST ((size_t)64 << 20)

struct account {
    uint64_t random;
    size_t live_count, live_most, freed_count, freed_most;
    void **live, **freed;
    uint64_t thread_pointer;
};
static struct account accounts[THREADS_MOST];
static const char *shape;
static size_t blocks_wanted;
static pthread_barrier_t all_born, all_done;

static void *mapped(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        _exit(3);
    return memory;
}

static uint64_t next_random(struct account *account) {
    uint64_t x = account->random;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return account->random = x;
}

static void keep(struct account *account, void *block, size_t bytes) {
    if (!block)
        return;
    memset(block, 0x5a ^ (int)bytes, bytes < 64 ? bytes : 64);
    account->live[account->live_count++] = block;
}

static void drop(struct account *account, size_t index) {
    void *block = account->live[index];
    account->live[index] = account->live[--account->live_count];
    account->freed[account->freed_count++] = block;
    free(block);
}

static size_t random_size(struct account *account) {
    uint64_t kind = next_random(account) % 100, x = next_random(account);
    if (!strcmp(shape, "small"))
        return x % 120;
    if (!strcmp(shape, "large") || kind < 1)
        return 100000 + x % 400000;
    if (kind < 60)
        return x % 128;
    if (kind < 90)
        return x % 2048;
    if (kind < 95)
        return 0x288 - 8; // the size of a thread's cache
    return x % 40000;
}

static void one_step(struct account *account) {
    uint64_t kind = next_random(account) % 100;
    if (account->live_count && (kind < 42 || account->live_count >= blocks_wanted)) {
        drop(account, next_random(account) % account->live_count);
        return;
    }
    size_t bytes = random_size(account);
    if (kind < 80) {
        keep(account, malloc(bytes), bytes);
    } else if (kind < 88) {
        void *block = calloc(1, bytes);
        if (block)
            account->live[account->live_count++] = block;
    } else if (kind < 94 && account->live_count) {
        size_t index = next_random(account) % account->live_count;
        void *old = account->live[index];
        uintptr_t old_address = (uintptr_t)old;
        void *block = realloc(old, bytes + 1);
        if (block && (uintptr_t)block != old_address) {
            account->freed[account->freed_count++] = (void *)old_address;
            account->live[index] = block;
        }
    } else {
        size_t alignment = (size_t)32 << next_random(account) % (kind == 99 ? 12 : 6);
        void *block;
        if (!posix_memalign(&block, alignment, bytes))
            keep(account, block, bytes);
    }
}

static void run(struct account *account) {
    __asm__("mov %%fs:0, %0" : "=r"(account->thread_pointer));
    account->live = mapped(RECORDS_MOST), account->freed = mapped(RECORDS_MOST * 2);
    for (size_t step = 0; step < blocks_wanted * 6; step++) {
        one_step(account);
        if (!strcmp(shape, "sbrk") && step % (blocks_wanted / 4 + 1) == 7) {
            char *own = sbrk((intptr_t)(next_random(account) % 9000));
            memset(own, 0x11, 1);
        }
        if (!strcmp(shape, "sbrk-mean") && step % (blocks_wanted / 4 + 1) == 7) {
            uint64_t *own = sbrk(8000);
            for (size_t i = 0; own && i < 1000; i++)
                own[i] = next_random(account) % 4096;
        }
        if (!strcmp(shape, "no-brk") && step == blocks_wanted) {
            char *end = sbrk(0);
            void *page = (void *)(((uintptr_t)end + 4095) & ~(uintptr_t)4095);
            mmap(page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        }
    }
    if (!strcmp(shape, "trimmed")) {
        while (account->live_count > blocks_wanted / 50)
            drop(account, next_random(account) % account->live_count);
        malloc_trim(0);
    }
    if (!strcmp(shape, "aligned")) {
        for (int shift = 5; shift < 24; shift++)
            for (int count = 0; count < 4; count++) {
                size_t bytes = 140000 + next_random(account) % 3000000;
                void *block = memalign((size_t)1 << shift, bytes);
                if (count == 3)
                    block = realloc(block, bytes / 2);
                if (count == 2)
                    block = realloc(block, bytes * 3);
                keep(account, block, 64);
            }
    }
}

static void *thread(void *argument) {
    pthread_barrier_wait(&all_born);
    run(argument);
    pthread_barrier_wait(&all_done);
    // Stays, so that its cache stays.
    if (strcmp(shape, "ended"))
        for (;;)
            pause();
    return NULL;
}

static int out_file;
static void record(uint64_t kind, uint64_t first, uint64_t second) {
    static char *buffer;
    static size_t used;
    const size_t size = 24 << 16;
    static int file;
    if (!buffer)
        buffer = mapped(size), file = out_file;
    uint64_t words[3] = {kind, first, second};
    if (kind)
        memcpy(buffer + used, words, 24), used += 24;
    if (!kind || used == size) {
        if (write(file, buffer, used) != (ssize_t)used)
            _exit(4);
        used = 0;
    }
}

int main(int count, char **arguments) {
    if (count != 6)
        return 2;
    shape = arguments[1];
    int file = open(arguments[2], O_CREAT | O_TRUNC | O_WRONLY, 0600);
    out_file = file;
    blocks_wanted = strtoul(arguments[4], NULL, 10);
    size_t threads = strtoul(arguments[5], NULL, 10);
    struct mallinfo2 (*info)(void) = dlsym(RTLD_DEFAULT, "mallinfo2");
    pthread_barrier_init(&all_born, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&all_done, NULL, (unsigned)threads + 1);
    pthread_t ids[THREADS_MOST];
    for (size_t index = 0; index <= threads; index++)
        accounts[index].random = strtoull(arguments[3], NULL, 10) * 0x9e3779b97f4a7c15ull + index * 77 + 1;
    for (size_t index = 1; index <= threads; index++)
        pthread_create(&ids[index], NULL, thread, &accounts[index]);
    // Nobody frees before all are born: what libc allocates for a thread is no block that was freed.
    pthread_barrier_wait(&all_born);
    run(&accounts[0]);
    pthread_barrier_wait(&all_done);
    if (!strcmp(shape, "ended"))
        for (size_t index = 1; index <= threads; index++)
            pthread_join(ids[index], NULL);
    // Blocks of other threads, freed here: they go into this thread's cache.
    for (size_t index = 1; index <= threads; index++)
        for (size_t times = 0; times < 40 && accounts[index].live_count; times++)
            drop(&accounts[index], next_random(&accounts[index]) % accounts[index].live_count);
    if (info) {
        struct mallinfo2 now = info();
        record(3, now.uordblks, 0), record(3, now.hblks, 1), record(3, now.hblkhd, 2);
        record(3, now.arena, 3), record(3, now.fordblks, 4);
    }
    for (size_t index = 0; index <= threads; index++) {
        struct account *account = &accounts[index];
        record(4, account->thread_pointer, 0);
        for (size_t i = 0; i < account->live_count; i++)
            record(1, (uint64_t)account->live[i], malloc_usable_size(account->live[i]));
        for (size_t i = 0; i < account->freed_count; i++)
            record(2, (uint64_t)account->freed[i], 0);
    }
    record(0, 0, 0);
    if (write(1, "ready\n", 6) != 6)
        return 1;
    char byte;
    while (read(0, &byte, 1) < 0 && errno == EINTR) {
    }
    _exit(0);
}
