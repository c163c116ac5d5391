// Allocator stress: two threads with stacks of about thirty frames, whose lower part changes slowly
// and whose upper part changes often. The other thread frees every second block. Arguments: pairs
// per thread, threads.
// Prints the CPU time per pair that the threads themselves measured.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <time.h>
#include <vector>

#define STAY __attribute__((noinline, noclone))

struct alignas(64) Mailbox {
    std::atomic<void *> slots[256] = {};
};
static std::vector<Mailbox> mailboxes;
static std::atomic<uint64_t> cpu_ns_sum{0};

static uint64_t thread_cpu_ns() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

struct Worker {
    unsigned self, count;
    uint64_t random, left;
    unsigned next() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return unsigned(random >> 20);
    }
    // Allocates one block of one of eight sizes. The thread puts it into the next thread's mailbox
    // or frees it, and frees the block in its own mailbox. (heaptrack, with which this is compared,
    // ends with bad_alloc on very many pairs of size and stack.)
    STAY void leaf() {
        unsigned bits = next();
        void *block = malloc(24 + (bits & 7) * 64);
        left--;
        if (bits & 0x10000) {
            void *old = mailboxes[(self + 1) % count].slots[bits >> 17 & 255].exchange(block);
            free(old);
        } else {
            free(block);
        }
    }
    STAY void a(int depth, unsigned path) { descend(depth - 1, path); asm volatile(""); }
    STAY void b(int depth, unsigned path) { descend(depth - 1, path); asm volatile(""); }
    STAY void c(int depth, unsigned path) { descend(depth - 1, path); asm volatile(""); }
    // A path is a number in base three. The outer twenty frames take one of 243 paths for
    // sixty-four pairs. The inner ten take a new one of 27 for every three pairs. That makes some
    // 6,500 stacks, as in a program of middle size.
    STAY void descend(int depth, unsigned path) {
        if (left == 0)
            return;
        if (depth <= 0) {
            leaf();
            return;
        }
        int repeats = depth == 5 ? 22 : depth == 1 ? 3 : 1;
        for (int i = 0; i < repeats && left; i++) {
            if (depth == 5)
                path = next() % 27;
            switch (path % 3) {
            case 0: a(depth, path / 3); break;
            case 1: b(depth, path / 3); break;
            default: c(depth, path / 3);
            }
        }
    }
    void run(uint64_t pairs) {
        left = pairs;
        uint64_t begin = thread_cpu_ns();
        while (left)
            descend(10, next() % 243);
        cpu_ns_sum += thread_cpu_ns() - begin;
    }
};

int main(int count, char **arguments) {
    uint64_t pairs = count > 1 ? strtoull(arguments[1], nullptr, 10) : 5000000;
    unsigned thread_count = count > 2 ? unsigned(atoi(arguments[2])) : 2;
    mailboxes = std::vector<Mailbox>(thread_count);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < thread_count; i++)
        threads.emplace_back([=] { Worker{i, thread_count, 88172645463325252ull + i * 7919, 0}.run(pairs); });
    for (auto &thread : threads)
        thread.join();
    for (auto &mailbox : mailboxes)
        for (auto &slot : mailbox.slots)
            free(slot.load());
    printf("cpu_ns_per_pair %.1f\n", double(cpu_ns_sum) / double(pairs * thread_count));
}
