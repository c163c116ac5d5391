// operator new and delete of every kind, ten calls each, every second block deleted.
// variant: -O2 -fomit-frame-pointer
// build: -std=c++17
// expect: frame=victim_new allocs=10 alloc_bytes=1000 outstanding=5 outstanding_bytes=500
// expect: frame=victim_new_array allocs=10 alloc_bytes=1000 outstanding=5
// expect: frame=victim_new_nothrow allocs=10 alloc_bytes=1000 outstanding=5
// expect: frame=victim_new_array_nothrow allocs=10 alloc_bytes=1000 outstanding=5
// expect: frame=victim_new_aligned allocs=10 alloc_bytes=1280 outstanding=5 outstanding_bytes=640
// expect: frame=victim_new_array_aligned allocs=10 alloc_bytes=1280 outstanding=5
// expect: frame=victim_new_aligned_nothrow allocs=10 alloc_bytes=1280 outstanding=5
// expect: frame=victim_new_cookie allocs=10 alloc_bytes=480 outstanding=0
// expect: frame=victim_strings allocs=100 outstanding=0
// expect: frame=victim_new_fails allocs=1
// expect-stack: malloc <- operator new allocs=0
#include <new>
#include <string>
#include <vector>

#include "victim.h"

struct Hundred {
    char bytes[100];
};
struct alignas(64) Aligned {
    char bytes[128];
};
struct Cookie {
    char bytes[4];
    ~Cookie() { bytes[0] = 0; }
};

static int turn;
template <class T> static void maybe_delete(T *block) {
    if (turn++ % 2)
        delete block;
}
template <class T> static void maybe_delete_array(T *block) {
    if (turn++ % 2)
        delete[] block;
}

VICTIM void victim_new() { maybe_delete(new Hundred); }
VICTIM void victim_new_array() { maybe_delete_array(new char[100]); }
VICTIM void victim_new_nothrow() {
    auto *block = new (std::nothrow) Hundred;
    if (turn++ % 2)
        operator delete(block, std::nothrow);
}
VICTIM void victim_new_array_nothrow() {
    auto *block = new (std::nothrow) char[100];
    if (turn++ % 2)
        operator delete[](block, std::nothrow);
}
VICTIM void victim_new_aligned() { maybe_delete(new Aligned); }
VICTIM void victim_new_array_aligned() { maybe_delete_array(new Aligned[1]); }
VICTIM void victim_new_aligned_nothrow() {
    auto *block = new (std::nothrow) Aligned;
    if (turn++ % 2)
        operator delete(block, sizeof(Aligned), std::align_val_t(64));
}
// Ten elements of four bytes behind the eight bytes that hold their number.
VICTIM void victim_new_cookie() { delete[] new Cookie[10]; }
VICTIM void victim_strings() {
    std::vector<std::string> list;
    list.reserve(99);
    for (int i = 0; i < 99; i++)
        list.emplace_back(40, 'x');
}
// The only block that counts is the exception itself.
VICTIM void victim_new_fails() {
    volatile size_t much = SIZE_MAX / 4;
    try {
        operator new(much);
        MUST(false);
    } catch (const std::bad_alloc &) {
    }
}

int main() {
    void (*calls[])() = {victim_new,         victim_new_array,         victim_new_nothrow,         victim_new_array_nothrow,
                         victim_new_aligned, victim_new_array_aligned, victim_new_aligned_nothrow, victim_new_cookie};
    for (auto call : calls)
        for (int i = 0; i < 10; i++)
            call();
    victim_strings();
    victim_new_fails();
    puts("done");
}
