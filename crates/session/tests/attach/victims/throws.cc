// Operators of the program's own: new throws where its malloc has no more.
//
// A round: 10 allocations and frees, 20 failures (10 of new, 10 of new[]), all caught.
#include <cstddef>
#include <new>
#include <unistd.h>

static char arena[1 << 24];
static std::size_t at;
static void *volatile kept;
static void *volatile freed;

extern "C" __attribute__((noinline)) void *malloc(std::size_t size) {
    if (size > 1000000) return nullptr;
    std::size_t start = (at + 31) & ~std::size_t(15);
    at = start + size;
    return arena + start;
}
extern "C" __attribute__((noinline)) void free(void *block) { freed = block; }
extern "C" void *calloc(std::size_t count, std::size_t size) { return malloc(count * size); }
void *operator new(std::size_t size) {
    void *block = malloc(size);
    if (!block) throw std::bad_alloc();
    return block;
}
void *operator new[](std::size_t size) { return operator new(size); }
#ifdef NOTHROW
void *operator new(std::size_t size, const std::nothrow_t &) noexcept { return malloc(size); }
#endif
__attribute__((noinline)) void operator delete(void *block) noexcept { free(block); }
void operator delete(void *block, std::size_t) noexcept { free(block); }

template <class Function> static bool fails(Function function) {
    try {
        function();
    } catch (std::bad_alloc &) {
        return true;
    }
    return false;
}

int main() {
    char line[16];
    write(1, "ready\n", 6);
    while (read(0, line, sizeof line) > 0) {
        for (int i = 0; i < 10; i++) {
            if (!fails([] { kept = operator new(2000000); }) || !fails([] { kept = operator new[](3000000); })) return 1;
            kept = operator new(40);
            operator delete(kept);
        }
        write(1, "done\n", 5);
    }
}
