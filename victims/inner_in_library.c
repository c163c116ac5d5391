// A library with an embedded allocator is loaded while the program runs: its constructor's calls
// are recorded, too.
// build: -ldl
// library: inner_plugin.c -O2 as inner_plugin.so
// expect: frame=victim_constructs allocs=5 alloc_bytes=500 outstanding=5
// expect: frame=victim_in_library allocs=30 alloc_bytes=3000 outstanding=20
// expect-unmatched: 0
#include <dlfcn.h>

#include "victim.h"

int main(int count, char **words) {
    (void)count;
    char path[4096];
    char *end = strrchr(words[0], '/');
    MUST(end && snprintf(path, sizeof path, "%.*s/inner_plugin.so", (int)(end - words[0]), words[0]) > 0);
    void *library = dlopen(path, RTLD_NOW);
    MUST(library);
    void (*victim_in_library)(int) = (void (*)(int))dlsym(library, "victim_in_library");
    MUST(victim_in_library);
    for (int number = 0; number < 30; number++) victim_in_library(number);
    return 0;
}
