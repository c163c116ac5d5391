// Operators new and delete in all their forms, with memory of their own mapping, and malloc for
// large blocks: each call counts once. One of them throws.
// build: -std=c++17 -fno-builtin -Wno-mismatched-new-delete
// variant: -O2
// variant: -O0
// expect: frame=victim_one allocs=200 alloc_bytes=20200 outstanding=100
// expect: frame=victim_array allocs=100 alloc_bytes=10300 outstanding=0
// expect: frame=victim_nothrow allocs=100 alloc_bytes=10700 outstanding=0
// expect: frame=victim_aligned allocs=100 alloc_bytes=25600 outstanding=0
// expect: frame=victim_large allocs=100 alloc_bytes=7000000 outstanding=0
// expect: frame=victim_thrown allocs=100 outstanding=0
// expect-unmatched: 0
#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "victim.h"

const size_t ROOM_BYTES = 64 << 20, LARGE_BYTES = 65536;
static char *room;
static size_t used;
static volatile size_t given_count;

VICTIM static void *take(size_t size, size_t align) {
    if (size > ROOM_BYTES)
        return nullptr;
    if (size > LARGE_BYTES)
        return malloc(size);
    if (!room)
        room = static_cast<char *>(mmap(nullptr, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    size_t start = (used + align - 1) & ~(align - 1);
    used = start + (size ? size : 1);
    MUST(used <= ROOM_BYTES);
    return room + start;
}
VICTIM static void *take_or_throw(size_t size, size_t align) {
    void *block = take(size, align);
    if (!block)
        throw std::bad_alloc();
    return block;
}
VICTIM static void give(void *block) {
    char *start = static_cast<char *>(block);
    given_count = given_count + 1;
    if (start && (start < room || start >= room + ROOM_BYTES))
        free(block);
}

VICTIM void *operator new(size_t size) { return take_or_throw(size, 16); }
VICTIM void *operator new[](size_t size) { return take_or_throw(size, 16); }
VICTIM void *operator new(size_t size, const std::nothrow_t &) noexcept { return take(size, 16); }
VICTIM void *operator new(size_t size, std::align_val_t align) { return take_or_throw(size, static_cast<size_t>(align)); }
VICTIM void operator delete(void *block) noexcept { give(block); }
VICTIM void operator delete(void *block, size_t) noexcept { give(block); }
VICTIM void operator delete[](void *block) noexcept { give(block); }
VICTIM void operator delete(void *block, const std::nothrow_t &) noexcept { give(block); }
VICTIM void operator delete(void *block, std::align_val_t) noexcept { give(block); }

VICTIM static void victim_one() {
    char *volatile kept = static_cast<char *>(operator new(101)), *volatile gone = static_cast<char *>(operator new(101));
    kept[0] = 1;
    operator delete(gone, size_t{101});
}
VICTIM static void victim_array() {
    char *volatile block = new char[103];
    delete[] block;
}
VICTIM static void victim_nothrow() {
    void *volatile block = operator new(107, std::nothrow);
    operator delete(block, std::nothrow);
}
VICTIM static void victim_aligned() {
    void *volatile block = operator new(256, std::align_val_t{256});
    MUST(reinterpret_cast<uintptr_t>(block) % 256 == 0);
    operator delete(block, std::align_val_t{256});
}
VICTIM static void victim_large() {
    void *volatile block = operator new(70000);
    operator delete(block);
}
// The runtime allocates the exception.
VICTIM static void victim_thrown() {
    bool is_thrown = false;
    try {
        void *volatile never = operator new[](ROOM_BYTES * 2);
        (void)never;
    } catch (const std::bad_alloc &) {
        is_thrown = true;
    }
    MUST(is_thrown);
    void *volatile block = operator new(109);
    operator delete(block);
}

int main() {
    for (int i = 0; i < 100; i++) {
        victim_one();
        victim_array();
        victim_nothrow();
        victim_aligned();
        victim_large();
        if (i % 2)
            victim_thrown();
    }
    puts("done");
    return 0;
}
