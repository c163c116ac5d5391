// A program with a second C library: a plugin in a namespace of its own (dlmopen), and one opened with RTLD_DEEPBIND once it is recorded.
//
// arguments: the plugin. A round: 20 blocks of each of the three, freed.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *(*far_alloc)(size_t), *(*deep_alloc)(size_t);
static void (*far_free)(void *), (*deep_free)(void *);
static int (*far_keys)(void);

static void *worker(void *argument) {
    for (int i = 0; i < 10; i++) far_free(far_alloc(100 + i));
    return argument;
}

int main(int count, char **arguments) {
    void *far = dlmopen(LM_ID_NEWLM, arguments[1], RTLD_NOW);
    if (!far) return 1;
    far_alloc = dlsym(far, "plugin_alloc");
    far_free = dlsym(far, "plugin_free");
    far_keys = dlsym(far, "plugin_keys");
    void *kept = far_alloc(1000);
    char line[16];
    write(1, "ready\n", 6);
    while (read(0, line, sizeof line) > 0) {
        if (!deep_alloc) {
            void *deep = dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND);
            deep_alloc = dlsym(deep, "plugin_alloc");
            deep_free = dlsym(deep, "plugin_free");
        }
        // The other library's keys have the same places.
        if (far_keys()) return 2;
        for (int i = 0; i < 20; i++) {
            free(malloc(100));
            deep_free(deep_alloc(200));
        }
        pthread_t thread;
        pthread_create(&thread, 0, worker, 0);
        pthread_join(thread, 0);
        for (int i = 0; i < 10; i++) far_free(far_alloc(300));
        write(1, "done\n", 5);
    }
    return kept == 0;
}
