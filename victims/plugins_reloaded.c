// Plugins that are opened by paths relative to the folder, closed at once, and followed by another
// at the same address. One thread does that, then four threads that take turns at the loader.
// build: -ldl -pthread
// library: plugin.c -DPLUGIN=victim_plugin_c as plugin_c.so
// library: plugin.c -DPLUGIN=victim_plugin_d as plugin_d.so
// library: plugin.c -DPLUGIN=victim_plugin_e -DROOM=70000 as plugin_e.so
// expect: frame=victim_plugin_c allocs=500 alloc_bytes=65500 outstanding=500
// expect: frame=victim_plugin_d allocs=500 alloc_bytes=68500 outstanding=500
// expect: frame=victim_plugin_e allocs=500 alloc_bytes=69500 outstanding=500
// expect-stack: allocate <- victim_plugin_c <- victim_use allocs=500
// expect-stack: allocate <- victim_plugin_d <- victim_use allocs=500
// expect-stack: allocate <- victim_plugin_e <- victim_use allocs=500
#include <dlfcn.h>
#include <pthread.h>

#include "victim.h"

static const struct {
    const char *path, *symbol;
    size_t size;
} plugins[] = {
    {"./plugin_c.so", "victim_plugin_c", 131},
    {"./plugin_d.so", "victim_plugin_d", 137},
    {"./plugin_e.so", "victim_plugin_e", 139},
};

VICTIM static void victim_use(int number) {
    void *library = dlopen(plugins[number].path, RTLD_NOW);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    MUST(library != NULL);
    void *(*function)(size_t) = (void *(*)(size_t))dlsym(library, plugins[number].symbol);
    for (int i = 0; i < 5; i++)
        MUST(function(plugins[number].size) != NULL);
    MUST(dlclose(library) == 0);
}

static void *run(void *first) {
    for (int i = 0; i < 20; i++)
        for (int number = 0; number < 3; number++)
            victim_use((number + (int)(intptr_t)first) % 3);
    return NULL;
}

int main(void) {
    char folder[4096] = {0};
    MUST(readlink("/proc/self/exe", folder, sizeof folder - 1) > 0);
    *strrchr(folder, '/') = 0;
    MUST(chdir(folder) == 0);
    run(NULL);
    pthread_t threads[4];
    for (intptr_t i = 0; i < 4; i++)
        MUST(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
