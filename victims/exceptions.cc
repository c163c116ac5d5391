// C++ exceptions thrown through traced frames: they arrive only if the stack is unchanged.
// variant: -O2 -fomit-frame-pointer
// expect: frame=victim_before_throw allocs=500 alloc_bytes=56500 outstanding=0
// expect-stack: victim_after_catch <- victim_catcher <- main allocs=500 alloc_bytes=59500
// expect: frame=victim_thrower allocs=1000
#include <memory>
#include <stdexcept>

#include "victim.h"

VICTIM static std::unique_ptr<char[]> victim_before_throw() { return std::unique_ptr<char[]>(new char[113]); }
VICTIM static int victim_thrower(int depth) {
    if (depth == 0)
        throw depth;
    auto guard = depth == 1 ? victim_before_throw() : nullptr;
    return victim_thrower(depth - 1) + (guard ? 1 : 2);
}
VICTIM static void victim_after_catch() { MUST(malloc(119) != nullptr); }
VICTIM static void victim_catcher(int depth) {
    try {
        victim_thrower(depth);
        MUST(false);
    } catch (int) {
    }
    victim_after_catch();
}

int main() {
    for (int i = 0; i < 500; i++)
        victim_catcher(1 + i % 40);
    puts("done");
}
