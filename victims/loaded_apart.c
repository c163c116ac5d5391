// Libraries that do not find the agent by name: opened with RTLD_DEEPBIND, and in another linker
// namespace with a C library of its own. They free the program's blocks, too.
// library: loaded_apart.c -DLIBRARY=victim_deep as deep.so
// library: loaded_apart.c -DLIBRARY=victim_namespace as namespace.so
// build: -ldl
// expect: frame=victim_deep_first allocs=1 alloc_bytes=211 outstanding=1
// expect: frame=victim_deep allocs=100 alloc_bytes=10100 outstanding=50
// expect: frame=victim_deep_strings allocs=100 alloc_bytes=700 outstanding=0
// expect: frame=victim_namespace_first allocs=1 alloc_bytes=211 outstanding=1
// expect: frame=victim_namespace allocs=100 alloc_bytes=10100 outstanding=50
// expect: frame=victim_namespace_strings allocs=100 alloc_bytes=700 outstanding=0
// expect: frame=victim_host allocs=20 alloc_bytes=2060 outstanding=0
// expect-stack: malloc <- victim_deep allocs=100
// expect-stack: malloc <- strdup <- victim_namespace_strings allocs=100
#include <dlfcn.h>

#include "victim.h"

#ifdef LIBRARY
#define JOINED(name, part) name##part
#define NAMED(name, part) JOINED(name, part)

static void *first;
static void NAMED(LIBRARY, _first)(void) __attribute__((constructor, noinline));
static void NAMED(LIBRARY, _first)(void) { first = malloc(211); }
VICTIM void *LIBRARY(size_t size) { return malloc(size); }
VICTIM void *NAMED(LIBRARY, _strings)(const char *text) { return strdup(text); }
VICTIM void NAMED(LIBRARY, _free)(void *block) { free(block); }
#else
struct library {
    void *(*alloc)(size_t);
    void *(*strings)(const char *);
    void (*free)(void *);
};

static struct library functions(void *handle, const char *name) {
    char text[100];
    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    MUST(handle);
    struct library library;
    *(void **)&library.alloc = dlsym(handle, name);
    snprintf(text, sizeof text, "%s_strings", name);
    *(void **)&library.strings = dlsym(handle, text);
    snprintf(text, sizeof text, "%s_free", name);
    *(void **)&library.free = dlsym(handle, text);
    MUST(library.alloc && library.strings && library.free);
    return library;
}

VICTIM static void *victim_host(void) { return malloc(103); }

static void use(struct library library) {
    for (int i = 0; i < 100; i++) {
        void *block = library.alloc(101);
        MUST(block);
        if (i % 2)
            library.free(block);
        library.free(library.strings("sixsix"));
    }
}

int main(void) {
    char folder[4096] = {0}, path[4200];
    MUST(readlink("/proc/self/exe", folder, sizeof folder - 1) > 0);
    *strrchr(folder, '/') = 0;
    snprintf(path, sizeof path, "%s/deep.so", folder);
    struct library deep = functions(dlopen(path, RTLD_NOW | RTLD_DEEPBIND), "victim_deep");
    snprintf(path, sizeof path, "%s/namespace.so", folder);
    struct library namespace = functions(dlmopen(LM_ID_NEWLM, path, RTLD_NOW), "victim_namespace");
    use(deep);
    use(namespace);
    for (int i = 0; i < 20; i++)
        deep.free(victim_host());
    puts("done");
    return 0;
}
#endif
