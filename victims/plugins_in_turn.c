// Two libraries loaded in turn, mostly at the same address: each stack names the library that was
// loaded then, though both are unloaded.
// build: -ldl
// library: plugin.c -DPLUGIN=victim_plugin_a as plugin_a.so
// library: plugin.c -DPLUGIN=victim_plugin_b as plugin_b.so
// expect: frame=victim_plugin_a allocs=50 alloc_bytes=6850 outstanding=50
// expect: frame=victim_plugin_b allocs=50 alloc_bytes=6950 outstanding=50
// expect-stack: allocate <- victim_plugin_a <- victim_use allocs=50
// expect-stack: allocate <- victim_plugin_b <- victim_use allocs=50
#include <dlfcn.h>

#include "victim.h"

VICTIM static void victim_use(const char *path, const char *symbol, size_t size) {
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    MUST(library != NULL);
    void *(*function)(size_t) = (void *(*)(size_t))dlsym(library, symbol);
    MUST(function(size) != NULL);
    MUST(dlclose(library) == 0);
}

int main(void) {
    char folder[4096] = {0}, path[4200];
    MUST(readlink("/proc/self/exe", folder, sizeof folder - 1) > 0);
    *strrchr(folder, '/') = 0;
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof path, "%s/plugin_a.so", folder);
        victim_use(path, "victim_plugin_a", 137);
        snprintf(path, sizeof path, "%s/plugin_b.so", folder);
        victim_use(path, "victim_plugin_b", 139);
    }
    puts("done");
    return 0;
}
